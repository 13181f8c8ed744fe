package backup

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"burrow.dev/burrow/internal/etcdstate"
)

// spool holds records in a file without a name, to give them back in the order of their
// revisions: in memory there are 16 bytes a key, whatever the records' size.
type spool struct {
	file   *os.File
	out    *bufio.Writer
	at     int64
	places []place
}

type place struct{ revision, offset int64 }

func newSpool(dir string) (*spool, error) {
	file, err := os.CreateTemp(dir, ".restore-*") // mode 0600
	if err != nil {
		return nil, fmt.Errorf("restore: make a file for the records: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, fmt.Errorf("restore: unlink the file for the records: %w", err)
	}
	return &spool{file: file, out: bufio.NewWriterSize(file, 256<<10)}, nil
}

func (s *spool) close() { _ = s.file.Close() }

func (s *spool) add(k etcdstate.Kept) error {
	line, err := lineOf(k)
	if err != nil {
		return err
	}
	s.places = append(s.places, place{k.Revision, s.at})
	s.at += int64(len(line))
	_, err = s.out.Write(line)
	return err
}

// transactions gives all keys, in the order of revisions and packed: those of one revision
// are never torn apart, unless they are more than most.
func (s *spool) transactions(most, mostBytes int, put func([]etcdstate.Kept) error) error {
	if err := s.out.Flush(); err != nil {
		return err
	}
	slices.SortFunc(s.places, func(a, b place) int {
		if a.revision != b.revision {
			return int(min(1, max(-1, a.revision-b.revision)))
		}
		return int(min(1, max(-1, a.offset-b.offset)))
	})
	var batch []etcdstate.Kept
	bytes := 0
	for first := 0; first < len(s.places); {
		end := first
		var group []etcdstate.Kept
		size := 0
		for ; end < len(s.places) && s.places[end].revision == s.places[first].revision; end++ {
			k, err := s.line(s.places[end].offset)
			if err != nil {
				return err
			}
			group = append(group, k)
			size += len(k.Key) + len(k.Value)
		}
		first = end
		if len(batch) > 0 && (len(batch)+len(group) > most || bytes+size > mostBytes) {
			if err := put(batch); err != nil {
				return err
			}
			batch, bytes = nil, 0
		}
		batch, bytes = append(batch, group...), bytes+size
		for len(batch) > most {
			if err := put(batch[:most]); err != nil {
				return err
			}
			batch = batch[most:]
		}
	}
	if len(batch) == 0 {
		return nil
	}
	return put(batch)
}

// line reads the line at an offset.
func (s *spool) line(offset int64) (etcdstate.Kept, error) {
	var l Line
	err := json.NewDecoder(io.NewSectionReader(s.file, offset, s.at-offset)).Decode(&l)
	return l.kept(), err
}
