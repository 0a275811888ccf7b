package discovery

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"kvca/proxy/backend"
)

// fileEvery is the time between two looks at a file.
const fileEvery = 2 * time.Second

// fileSource follows a list of backends in a file.
type fileSource struct {
	progress
	path string
	read os.FileInfo // of what was read last, nil for nothing
	list []backend.Config
	err  error // what was wrong with it
}

func newFile(spec, rest string, q *query, o Options) (Source, error) {
	if rest == "" {
		return nil, errors.New("want file:PATH")
	}
	return &fileSource{progress: newProgress(spec, o), path: rest}, q.end()
}

// Run looks at the file until ctx ends.
func (s *fileSource) Run(ctx context.Context, found func([]backend.Config)) {
	s.poll(ctx, fileEvery, s.ask, found)
}

// ask reads the file if it is another one than before. A file that is being written
// looks different once it is whole, so what was wrong then is read again.
func (s *fileSource) ask(context.Context) ([]backend.Config, error) {
	info, err := os.Stat(s.path)
	if err != nil {
		s.read = nil
		return nil, err
	}
	if s.read == nil || !sameFile(s.read, info) {
		var text []byte
		if text, err = readBounded(s.path, maxFileBytes); err != nil {
			return nil, err
		}
		s.read = info
		s.list, s.err = parseList(s.path, text)
	}
	return s.list, s.err
}

func sameFile(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// entry is one backend as a file has it.
type entry struct {
	ID          string   `yaml:"id"`
	URL         string   `yaml:"url"`
	Weight      float64  `yaml:"weight"`
	Models      []string `yaml:"models"`
	CacheTokens int      `yaml:"cache_tokens"`
	APIKeyFile  string   `yaml:"api_key_file"`
	CAFile      string   `yaml:"ca_file"`
	ServerName  string   `yaml:"server_name"`
	SkipVerify  bool     `yaml:"insecure_skip_verify"`
	Events      string   `yaml:"events"`
	Zone        string   `yaml:"zone"`
	Draining    bool     `yaml:"draining"`
}

func (e entry) config() (backend.Config, error) {
	c := backend.Config{
		ID: e.ID, URL: e.URL, Weight: e.Weight, Models: e.Models, CacheTokens: e.CacheTokens,
		CAFile: e.CAFile, ServerName: e.ServerName, InsecureSkipVerify: e.SkipVerify,
		Events: e.Events, Zone: e.Zone, Draining: e.Draining,
	}
	var keyErr error
	if e.APIKeyFile != "" {
		if c.APIKey, keyErr = readKey(e.APIKeyFile); keyErr != nil {
			keyErr = fmt.Errorf("api_key_file: %w", keyErr)
		}
	}
	c, err := c.Complete()
	return c, errors.Join(keyErr, err)
}
