package backend

import (
	"strings"
	"testing"
	"time"
)

func TestValidateNamesEveryFault(t *testing.T) {
	c := Config{
		ID: "a b", URL: "ftp://host", Weight: -1, Models: []string{""}, CacheTokens: -5, APIKey: "a\nb",
	}
	err := c.Validate()
	if err == nil {
		t.Fatal("valid")
	}
	for _, want := range []string{`id: "a b"`, `"ftp"`, "weight: -1", "models:", "cache_tokens: -5", "api_key:"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "a\nb") {
		t.Error("the key is shown")
	}
}

func TestURLs(t *testing.T) {
	for url, id := range map[string]string{
		"http://h:8000": "h:8000", "https://h/base/": "h:443", "h2c://h": "h:80", "http://[::1]:9": "[::1]:9",
	} {
		c, _, err := Config{URL: url}.resolve()
		if err != nil || c.ID != id || c.Weight != 1 {
			t.Errorf("%s: %+v, %v", url, c, err)
		}
	}
	for _, url := range []string{"", "host:80", "http://", "http://u:p@h", "http://h?q", "http://h#f", "http://h:x", "unix:///s"} {
		if err := (Config{URL: url}).Validate(); err == nil {
			t.Errorf("%q is valid", url)
		} else if strings.Contains(err.Error(), "u:p@") {
			t.Errorf("credentials shown: %v", err)
		}
	}
	for _, c := range []Config{{URL: "http://h", CAFile: "x"}, {URL: "h2c://h", InsecureSkipVerify: true}} {
		if err := c.Validate(); err == nil {
			t.Errorf("%+v is valid", c)
		}
	}
}

// Whatever adds a backend completes its configuration first.
func TestIDsThatAreNoneAreRefusedWithWhatIsAllowed(t *testing.T) {
	for _, id := range []string{"*", "a b", "a/b", "gpu\u202e1-", "a\x1b[2J", "a,b", "a=b", "gpü", strings.Repeat("x", 129)} {
		_, err := Config{ID: id, URL: "http://h:1"}.Complete()
		if err == nil || !strings.HasPrefix(err.Error(), "id: ") || !strings.Contains(err.Error(), "want 1 to 128 letters of a-z and A-Z, digits, and . _ - : @ [ ] %") || strings.ContainsAny(err.Error(), "\u202e\x1b") {
			t.Errorf("%q: %v", id, err)
		}
	}
	// What a URL makes by itself stays an id, and where it does not, one has to be given.
	for url, id := range map[string]string{
		"http://10.0.0.1:8000": "10.0.0.1:8000", "https://gpu-1.example": "gpu-1.example:443", "http://a_b:1": "a_b:1",
		"http://[fe80::1%25eth0]:8000": "[fe80::1%eth0]:8000",
	} {
		if c, err := (Config{URL: url}).Complete(); err != nil || c.ID != id {
			t.Errorf("%s: %q, %v", url, c.ID, err)
		}
	}
	if err := (Config{URL: "http://*:80"}).Validate(); err == nil || !strings.Contains(err.Error(), `id: "*:80"`) {
		t.Errorf("http://*:80: %v", err)
	}
	if err := (Config{ID: "own", URL: "http://bücher:80"}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestPoolConfigNamesEveryFault(t *testing.T) {
	err := PoolConfig{HealthInterval: time.Microsecond, ScrapeInterval: -1, HeaderTimeout: -1, MaxConns: -1, BreakerFailures: -1}.Validate()
	if err == nil {
		t.Fatal("valid")
	}
	for _, want := range []string{"health_interval: 1µs", "scrape_interval", "header_timeout", "max_conns: -1", "breaker_failures: -1"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	if err := (PoolConfig{}).Validate(); err != nil {
		t.Fatal(err)
	}
}
