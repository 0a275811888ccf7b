package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"kvca/proxy/backend"
)

// maxKeyBytes bounds files that hold a key.
const maxKeyBytes = 64 << 10

// addBackend reads [ID=]URL.
func addBackend(s *settings, v string) error {
	id, address := "", v
	// A URL may hold a = of its own, but not before its scheme's end.
	if i := strings.Index(v, "="); i >= 0 && !strings.Contains(v[:i], "://") {
		id, address = v[:i], v[i+1:]
		if id == "" {
			return fmt.Errorf("%q: want URL or ID=URL, such as gpu-1=http://10.0.0.1:8000", v)
		}
	}
	return s.addBackend(backend.Config{ID: id, URL: address})
}

// addBackend takes one backend, unless another has its ID.
func (s *settings) addBackend(c backend.Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if c.ID == "" {
		c.ID = defaultID(c.URL)
	}
	for _, other := range s.backends {
		if other.ID == c.ID {
			return fmt.Errorf("%q has the id %s, as %q does: want an id of its own", c.URL, c.ID, other.URL)
		}
	}
	s.backends = append(s.backends, c)
	return nil
}

// defaultID is host:port of a valid URL.
func defaultID(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = "80"
		if u.Scheme == "https" {
			port = "443"
		}
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// backendFields are the keys of a backend that is written as a mapping.
var backendFields = []struct {
	key string
	set func(*backend.Config, item) error
}{
	{"id", backendText(func(c *backend.Config) *string { return &c.ID })},
	{"url", backendText(func(c *backend.Config) *string { return &c.URL })},
	{"weight", setWeight},
	{"models", setModels},
	{"cache_tokens", setCacheTokens},
	{"api_key_file", setAPIKey},
	{"ca_file", backendText(func(c *backend.Config) *string { return &c.CAFile })},
	{"insecure_skip_verify", setInsecure},
	{"zone", backendText(func(c *backend.Config) *string { return &c.Zone })},
	{"server_name", backendText(func(c *backend.Config) *string { return &c.ServerName })},
	{"events", backendText(func(c *backend.Config) *string { return &c.Events })},
}

func backendKeys() []string {
	keys := make([]string, len(backendFields))
	for i, f := range backendFields {
		keys[i] = f.key
	}
	return keys
}

// addBackendMapping reads a backend that is written as a mapping. Faults carry
// the lines of the keys that they are about.
func addBackendMapping(s *settings, m item) []fault {
	var c backend.Config
	var wrong []fault
	note := func(line int, key string, err error) {
		wrong = append(wrong, fault{origin{line: line}, "backend: " + key, err.Error()})
	}
	lines := map[string]int{"url": m.line} // where a key that is missing is missed
	faulty := make(map[string]bool)
	for _, f := range m.fields {
		lines[f.key] = f.line
		if err := setBackendField(&c, f); err != nil {
			faulty[f.key] = true
			note(f.line, f.key, err)
		}
	}
	for _, err := range leaves(s.addBackend(c)) {
		key := leadingWord(err.Error())
		text := trimKey(err.Error(), key)
		if lines[key] == 0 {
			key, text = "url", err.Error()
		}
		if !faulty[key] {
			note(lines[key], key, errors.New(text))
		}
	}
	return wrong
}

func setBackendField(c *backend.Config, f field) error {
	for _, known := range backendFields {
		if known.key == f.key {
			return known.set(c, f.value)
		}
	}
	return fmt.Errorf("no such key: want one of %s", strings.Join(backendKeys(), ", "))
}

// single is the text of an item that has to be one.
func single(it item) (string, error) {
	if it.kind != scalar {
		return "", fmt.Errorf("is %v: want a single value", it.kind)
	}
	return it.text, nil
}

func backendText(at func(*backend.Config) *string) func(*backend.Config, item) error {
	return func(c *backend.Config, it item) (err error) {
		*at(c), err = single(it)
		return err
	}
}

func setWeight(c *backend.Config, it item) error {
	text, err := single(it)
	if err == nil {
		c.Weight, err = readFloat(text)
	}
	return err
}

func setCacheTokens(c *backend.Config, it item) error {
	text, err := single(it)
	if err == nil {
		c.CacheTokens, err = readCount(text)
	}
	return err
}

func setInsecure(c *backend.Config, it item) error {
	text, err := single(it)
	if err == nil {
		c.InsecureSkipVerify, err = readBool(text)
	}
	return err
}

func setModels(c *backend.Config, it item) error {
	if it.kind != sequence {
		return fmt.Errorf("is %v: want a list of names", it.kind)
	}
	for _, name := range it.list {
		text, err := single(name)
		if err != nil {
			return err
		}
		c.Models = append(c.Models, text)
	}
	return nil
}

// setAPIKey reads the key from its file: it has no place in a configuration.
func setAPIKey(c *backend.Config, it item) error {
	name, err := single(it)
	if err != nil {
		return err
	}
	key, err := readBounded(name, maxKeyBytes)
	if err != nil {
		return fmt.Errorf("%q %w", name, err)
	}
	if c.APIKey = strings.TrimSpace(string(key)); c.APIKey == "" {
		return fmt.Errorf("%q is empty: want a file with one key", name)
	}
	return nil
}
