package manifest

import "strings"

// Nearest finds the known word that word is most likely a slip for, or "".
func Nearest(word string, known []string) string {
	if len(word) > 2*MaxNameLength {
		return ""
	}
	best, distance := "", max(2, len(word)/3)+1
	for _, k := range known {
		if d := edits(strings.ToLower(word), strings.ToLower(k)); d < distance {
			best, distance = k, d
		}
	}
	if best != "" && distance < len(word) {
		return best
	}
	for _, k := range known {
		if 2*len(word) >= len(k) && abbreviates(strings.ToLower(word), strings.ToLower(k)) {
			return k
		}
	}
	return ""
}

// abbreviates reports whether long has the letters of short in their order, as publickey
// has those of pubkey.
func abbreviates(short, long string) bool {
	for i := range len(long) {
		if short != "" && long[i] == short[0] {
			short = short[1:]
		}
	}
	return short == ""
}

// edits is the Levenshtein distance in bytes, two rows at a time.
func edits(a, b string) int {
	previous, current := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := range len(a) {
		current[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			current[j+1] = min(previous[j]+cost, previous[j+1]+1, current[j]+1)
		}
		previous, current = current, previous
	}
	return previous[len(b)]
}
