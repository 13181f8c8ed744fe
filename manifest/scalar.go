package manifest

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// memorySize is in MiB, diskSize in GiB; both may be written as text with a unit.
type (
	memorySize int
	diskSize   int
)

func (memorySize) unit() string { return "MiB" }
func (diskSize) unit() string   { return "GiB" }

// sized is a number with a unit.
type sized interface{ unit() string }

// sizePattern bounds the digits, so that no text makes a number of a million digits.
var sizePattern = regexp.MustCompile(`^([0-9]{1,12}(?:\.[0-9]{1,6})?) ?(?:([KMGT])iB)?$`)

var unitShift = map[string]uint{"K": 10, "M": 20, "G": 30, "T": 40}

// parseSize reads "20GiB" or "512" in a unit; the result must be whole.
func parseSize(text, unit string) (int, error) {
	parts := sizePattern.FindStringSubmatch(text)
	if parts == nil {
		return 0, fmt.Errorf("%s is not a size; write a number of %s, or a number with KiB, MiB, GiB or TiB", quote(text), unit)
	}
	size, ok := new(big.Rat).SetString(parts[1])
	if !ok {
		return 0, fmt.Errorf("%s is not a size", quote(text))
	}
	own := unitShift[unit[:1]]
	shift := own
	if parts[2] != "" {
		shift = unitShift[parts[2]]
	}
	size.Mul(size, new(big.Rat).SetFrac(new(big.Int).Lsh(big.NewInt(1), shift), new(big.Int).Lsh(big.NewInt(1), own)))
	if !size.IsInt() || !size.Num().IsInt64() {
		return 0, fmt.Errorf("%s is not a whole number of %s", quote(text), unit)
	}
	return int(size.Num().Int64()), nil
}

func (d *decoder) text(v *value, target reflect.Value, path string, r rules, cut int) {
	if v.shape != shapeString && v.shape != shapeFlag {
		next := "write it in quotes"
		if v.shape == shapeMapping || v.shape == shapeSequence {
			next = ""
		}
		d.complainCut(path, cut, fmt.Sprintf("must be text, but is %s", v.shape), next)
		return
	}
	target.SetString(v.text)
	length := utf8.RuneCountInString(v.text)
	switch {
	case len(r.enum) > 0 && !slices.Contains(r.enum, v.text):
		d.choice(v.text, path, r)
	case r.minLength != nil && length < *r.minLength:
		d.complainCut(path, cut, "is empty", "give it a value")
	case r.maxLength != nil && length > *r.maxLength:
		d.complainCut(path, cut, fmt.Sprintf("is %d characters long", length), fmt.Sprintf("at most %d are allowed", *r.maxLength))
	}
}

// choice complains about a value outside its list.
func (d *decoder) choice(text, path string, r rules) {
	if instead, ok := insteadOf(d.doc.Kind, path, text); ok {
		d.complain(path, text+" is not supported yet", instead)
		return
	}
	next := "use " + alternatives(r.enum)
	if near := Nearest(text, r.enum); near != "" {
		next = "did you mean " + near + "?"
	}
	d.complain(path, fmt.Sprintf("%s is not allowed", quote(text)), next)
}

func (d *decoder) integer(v *value, target reflect.Value, path string, r rules) {
	n, err := integerOf(v, target.Interface())
	if err != nil {
		d.complain(path, err.Error(), "")
		return
	}
	target.SetInt(n)
	switch {
	case r.minimum != nil && n < int64(*r.minimum):
		d.complain(path, fmt.Sprintf("%d is too small", n), bounds(r))
	case r.maximum != nil && n > int64(*r.maximum):
		d.complain(path, fmt.Sprintf("%d is too large", n), bounds(r))
	}
}

func integerOf(v *value, target any) (int64, error) {
	unit, withUnit := target.(sized)
	switch {
	case v.shape == shapeInt:
		return v.number, nil
	case withUnit && (v.shape == shapeString || v.shape == shapeFlag || v.shape == shapeFloat):
		n, err := parseSize(v.text, unit.unit())
		return int64(n), err
	case v.shape == shapeFlag:
		n, err := strconv.ParseInt(v.text, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("must be a whole number, but is %s", quote(v.text))
		}
		return n, nil
	}
	return 0, fmt.Errorf("must be a whole number, but is %s", v.shape)
}

func bounds(r rules) string {
	switch {
	case r.maximum == nil:
		return fmt.Sprintf("at least %d", *r.minimum)
	case r.minimum == nil:
		return fmt.Sprintf("at most %d", *r.maximum)
	}
	return fmt.Sprintf("use %d to %d", *r.minimum, *r.maximum)
}

func (d *decoder) boolean(v *value, target reflect.Value, path string) {
	switch {
	case v.shape == shapeBool:
		target.SetBool(v.truth)
	case v.shape == shapeFlag && (v.text == "true" || v.text == "false"):
		target.SetBool(v.text == "true")
	default:
		d.complain(path, fmt.Sprintf("must be true or false, but is %s", v.shape), "write true or false, without quotes")
	}
}

// free is a value of any shape as JSON knows it; the alias limit has bounded its size.
func (d *decoder) free(v *value, path string) any {
	switch v.shape {
	case shapeMapping:
		m := make(map[string]any, len(v.entries))
		for _, e := range v.entries {
			m[e.key] = d.free(e.value, join(path, e.key))
		}
		return m
	case shapeSequence:
		list := make([]any, len(v.items))
		for i, item := range v.items {
			list[i] = d.free(item, path+"["+strconv.Itoa(i)+"]")
		}
		return list
	case shapeInt:
		return v.number
	case shapeBool:
		return v.truth
	case shapeNull:
		return nil
	case shapeFloat:
		if !math.IsInf(v.real, 0) && !math.IsNaN(v.real) {
			return v.real
		}
	case shapeFlag:
		if parsed := d.parseFlag(v, path); parsed != nil {
			return d.free(parsed, path)
		}
	}
	return v.text
}

func alternatives(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
