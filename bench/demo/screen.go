package demo

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
)

// Terminal controls. Long lines are cut, not wrapped, while the picture is drawn:
// its height in lines must be known to draw the next one over it.
const (
	noWrap    = "\x1b[?7l"
	wrap      = "\x1b[?7h"
	eraseDown = "\r\x1b[J"
	cursorUp  = "\x1b[%dA"
)

// Screen shows one picture after another. It may be used from any goroutine.
type Screen struct {
	// Lost is called with the first error of writing, if it is set: the terminal is
	// gone, or the reader of a pipe. It must be set before the first picture.
	Lost func(error)

	mu    sync.Mutex
	out   io.Writer
	live  bool
	lines int // of the picture that the cursor stands below
	lost  bool
}

// NewScreen is a screen on out: a live one is a terminal, where each picture
// takes the place of the one before.
func NewScreen(out io.Writer, live bool) *Screen { return &Screen{out: out, live: live} }

// Draw shows a picture, whose lines all end.
func (s *Screen) Draw(picture string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.live {
		s.put(picture + "\n")
		return
	}
	// One write: a terminal then shows no half of it.
	s.put(s.erase() + noWrap + picture + wrap)
	s.lines = strings.Count(picture, "\n")
}

// Write puts text where the picture is; the next one comes below it. Text that
// doesn't end its last line gets its end.
func (s *Screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	end := ""
	if !bytes.HasSuffix(text, []byte("\n")) {
		end = "\n"
	}
	return len(text), s.put(s.erase() + string(text) + end)
}

// put writes, and tells of the first time that it can't. The caller holds mu.
func (s *Screen) put(text string) error {
	_, err := io.WriteString(s.out, text)
	if err != nil && !s.lost {
		s.lost = true
		if s.Lost != nil {
			s.Lost(err)
		}
	}
	return err
}

// erase takes the picture off; the next one starts where it was. The caller
// holds mu.
func (s *Screen) erase() string {
	if s.lines == 0 {
		return ""
	}
	up := fmt.Sprintf(cursorUp, s.lines)
	s.lines = 0
	return up + eraseDown
}

// Live is whether pictures take each other's place.
func (s *Screen) Live() bool { return s.live }
