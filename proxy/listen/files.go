package listen

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
)

const maxFile = 1 << 20 // an authority's bundle may be long

// files are read whole at each look: they are small, and a mounted secret changes
// by a link that no time of the file tells.
type files struct {
	paths []string
	used  [sha256.Size]byte // of what was last taken or refused
	seen  [sha256.Size]byte // of what was there at the last look
}

// changed returns the contents once they differ from what was last taken and have
// been the same for two looks: a first sight may be of a file half written.
func (f *files) changed() (contents [][]byte, changed bool, err error) {
	contents, sum, err := f.read()
	if err != nil {
		return nil, false, err
	}
	settled := sum == f.seen
	f.seen = sum
	if !settled || sum == f.used {
		return nil, false, nil
	}
	f.used = sum
	return contents, true, nil
}

// now returns the contents as they are.
func (f *files) now() ([][]byte, error) {
	contents, sum, err := f.read()
	if err == nil {
		f.used, f.seen = sum, sum
	}
	return contents, err
}

func (f *files) read() (contents [][]byte, sum [sha256.Size]byte, err error) {
	all := sha256.New()
	for _, path := range f.paths {
		b, err := readFile(path)
		if err != nil {
			return nil, sum, err
		}
		one := sha256.Sum256(b)
		all.Write(one[:])
		contents = append(contents, b)
	}
	all.Sum(sum[:0])
	return contents, sum, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(b) > maxFile {
		return nil, fmt.Errorf("read %s: longer than %d bytes", path, maxFile)
	}
	return b, nil
}
