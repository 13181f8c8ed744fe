package imagestore

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// part is a download under way: the bytes, and beside them (.json) what ties the rest
// of the file to them.
type part struct{ path string }

// partState is the JSON beside a part.
type partState struct {
	URL       string `json:"url"`
	Validator string `json:"validator"` // strong ETag, or Last-Modified; "" when the server gave none
}

// newPart names the part of a URL.
func newPart(dir, address string) *part {
	sum := sha256.Sum256([]byte(address))
	return &part{filepath.Join(dir, hex.EncodeToString(sum[:16])+".part")}
}

func (p *part) size() int64 {
	info, err := os.Stat(p.path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// resumeAt says from where to go on, and what proves that the rest is the same file's.
// Without proof it starts again.
func (p *part) resumeAt() (offset int64, validator string) {
	var st partState
	text, err := os.ReadFile(p.path + ".json")
	if err != nil || json.Unmarshal(text, &st) != nil || st.Validator == "" {
		return 0, ""
	}
	return p.size(), st.Validator
}

// begin notes what the answer says of the file, and refuses one that cannot fit.
func (p *part) begin(res *http.Response, offset, total int64) error {
	if total > maxDownload {
		return lasting(errTooLarge(total), "")
	}
	if err := checkRoom(filepath.Dir(p.path), max(total-offset, 0)); err != nil {
		return err
	}
	if offset > 0 {
		return nil
	}
	st := partState{URL: res.Request.URL.Redacted(), Validator: res.Header.Get("ETag")}
	if st.Validator == "" || strings.HasPrefix(st.Validator, "W/") {
		st.Validator = res.Header.Get("Last-Modified")
	}
	text, err := json.Marshal(st)
	if err != nil {
		return err
	}
	// The part is emptied first: a note never vouches for bytes of an earlier file.
	if err := os.Remove(p.path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.WriteFile(p.path+".json", text, 0o600)
}

// remove forgets the download. What cannot be removed now is removed by age.
func (p *part) remove() {
	_ = os.Remove(p.path)
	_ = os.Remove(p.path + ".json")
}

// removeOldParts removes what nobody has asked for in a long time. Nobody holds such a
// part: its holder would have written to it.
func (s *Store) removeOldParts() {
	old, err := filepath.Glob(filepath.Join(s.downloadsDir(), "*"))
	if err != nil {
		return
	}
	for _, path := range old {
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > partAge {
			if err := os.Remove(path); err != nil {
				s.log.Warn("old download not removed", "path", path, "error", err)
			}
		}
	}
}
