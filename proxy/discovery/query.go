package discovery

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvca/proxy/backend"
)

// query is what stands behind a spec's question mark. Each key is taken once; what
// nobody has taken is a fault.
type query struct {
	values url.Values
	known  []string
	faults []error
}

func readQuery(raw string) (*query, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, fmt.Errorf("what follows the ? can't be read (%w): want KEY=VALUE&KEY=VALUE", err)
	}
	return &query{values: values}, nil
}

// take gives the value of a key, its default where it is not there.
func (q *query) take(key, def string) string {
	q.known = append(q.known, key)
	switch list := q.values[key]; {
	case len(list) == 0:
		return def
	case len(list) > 1 || list[0] == "":
		q.faults = append(q.faults, fmt.Errorf("%s: given %d times: want one value", key, len(list)))
		return def
	default:
		return list[0]
	}
}

// oneOf takes a key that has few values.
func (q *query) oneOf(key, def string, want ...string) string {
	v := q.take(key, def)
	if !slices.Contains(want, v) {
		q.faults = append(q.faults, fmt.Errorf("%s: %q: want one of %s", key, v, strings.Join(want, ", ")))
	}
	return v
}

// takeNumber takes a key whose value is a number.
func (q *query) takeNumber(key string) float64 {
	text := q.take(key, "0")
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		q.faults = append(q.faults, fmt.Errorf("%s: %q: want a number", key, text))
	}
	return v
}

const (
	usualInterval = 10 * time.Second
	leastInterval = time.Second
	mostInterval  = time.Hour
)

// takeInterval takes the time between two questions.
func (q *query) takeInterval() time.Duration {
	text := q.take("interval", usualInterval.String())
	d, err := time.ParseDuration(text)
	if err != nil || d < leastInterval || d > mostInterval {
		q.faults = append(q.faults, fmt.Errorf("interval: %q: want %v to %v", text, leastInterval, mostInterval))
		return usualInterval
	}
	return d
}

// end reports every fault, keys that nobody knows among them.
func (q *query) end() error {
	for _, key := range slices.Sorted(maps.Keys(q.values)) {
		if !slices.Contains(q.known, key) {
			q.faults = append(q.faults, fmt.Errorf("%s: no such key: want one of %s", key, strings.Join(slices.Sorted(slices.Values(q.known)), ", ")))
		}
	}
	return errors.Join(q.faults...)
}

// shape is what the backends of one source have in common.
type shape struct {
	scheme string
	config backend.Config
}

// takeShape takes the keys that all but files have. name is what certificates are
// checked for, where the spec does not say.
func (q *query) takeShape(name string) shape {
	s := shape{scheme: q.oneOf("scheme", "http", "http", "https", "h2c")}
	s.config = backend.Config{
		Weight: q.takeNumber("weight"), CAFile: q.take("ca_file", ""), ServerName: q.take("server_name", ""),
		Events: q.take("events", ""), Zone: q.take("zone", ""),
	}
	if models := q.take("models", ""); models != "" {
		s.config.Models = strings.Split(models, ",")
	}
	if file := q.take("api_key_file", ""); file != "" {
		key, err := readKey(file)
		if err != nil {
			q.faults = append(q.faults, fmt.Errorf("api_key_file: %w", err))
		}
		s.config.APIKey = key
	}
	if s.scheme == "https" && s.config.ServerName == "" {
		s.config.ServerName = name
	}
	if _, err := s.at("127.0.0.1", 80).Complete(); err != nil {
		q.faults = append(q.faults, err)
	}
	return s
}

// at is the backend at a host and port.
func (s shape) at(host string, port uint16) backend.Config {
	c, address := s.config, net.JoinHostPort(host, strconv.Itoa(int(port)))
	c.ID, c.URL = address, s.scheme+"://"+address
	return c
}

const (
	maxKeyBytes  = 64 << 10
	maxFileBytes = 1 << 20
)

// readKey reads a file that holds one key.
func readKey(name string) (string, error) {
	text, err := readBounded(name, maxKeyBytes)
	if err != nil {
		return "", err
	}
	key := strings.TrimSpace(string(text))
	if key == "" {
		return "", fmt.Errorf("%q is empty: want a file with one key", name)
	}
	return key, nil
}

// readBounded reads a file of at most limit bytes.
func readBounded(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("%s is longer than %d bytes: want a smaller file", name, limit)
	}
	return text, nil
}

func readPort(text string) (uint16, error) {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return 0, fmt.Errorf("port %q: want a number from 1 to 65535", text)
	}
	return uint16(port), nil
}
