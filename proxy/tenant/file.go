package tenant

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxFileBytes = 1 << 20 // half a second to parse
	maxSaltBytes = 256
)

// readBounded reads a file of at most limit bytes.
func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("can't be read (%w): want a readable file", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("can't be read (%w): want a readable file", err)
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("is longer than %d bytes: want a smaller file", limit)
	}
	return text, nil
}

// saltFrom reads a salt's file, white space around it aside. A relative path begins
// where the keys file is.
func (f *form) saltFrom(name string, p place) (salt, path string) {
	path = name
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(f.path), path)
	}
	text, err := readBounded(path, maxSaltBytes+2)
	if err != nil {
		f.fault(p, "%.200q %v", path, err)
		return "", path
	}
	salt = strings.TrimSpace(string(text))
	if err := checkSalt(salt); err != nil {
		f.fault(p, "%.200q %v", path, err)
	}
	return salt, path
}

// checkSalt is whether a salt can stand in a request. Its error never shows it.
func checkSalt(salt string) error {
	if salt == "" || len(salt) > maxSaltBytes {
		return fmt.Errorf("holds a salt of %d bytes: want 1 to %d", len(salt), maxSaltBytes)
	}
	if !utf8.ValidString(salt) || strings.IndexFunc(salt, unicode.IsControl) >= 0 {
		return fmt.Errorf("holds a salt with bytes that are no text: want one line of it, such as `openssl rand -hex 32` prints")
	}
	return nil
}

// stamp is what tells one state of the files from another without reading them.
type stamp []os.FileInfo

// stampOf looks at each file. A link is followed: mounted secrets change by one.
func stampOf(paths []string) stamp {
	s := make(stamp, len(paths))
	for i, path := range paths {
		if info, err := os.Stat(path); err == nil {
			s[i] = info
		}
	}
	return s
}

func (s stamp) same(o stamp) bool {
	if len(s) != len(o) {
		return false
	}
	for i, a := range s {
		b := o[i]
		if a == nil || b == nil {
			if a != b {
				return false
			}
			continue
		}
		if a.Size() != b.Size() || !a.ModTime().Equal(b.ModTime()) || !os.SameFile(a, b) {
			return false
		}
	}
	return true
}

// exposed says who else can get at the file, "" for nobody.
func exposed(path string, salted bool) string {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return ""
	case info.Mode().Perm()&0o002 != 0:
		return "everyone may write the keys file, and so give themselves a key: chmod o-w"
	case salted && info.Mode().Perm()&0o004 != 0:
		return "everyone may read the keys file, and there are salts in it: chmod o-r, or use cache_salt_file"
	}
	return ""
}
