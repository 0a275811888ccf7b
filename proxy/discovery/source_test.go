package discovery

import (
	"strings"
	"testing"
)

func TestSpecs(t *testing.T) {
	for _, c := range []struct{ spec, fault string }{
		{"file:/etc/kvca/backends.yaml", ""},
		{"dns://fleet:8000?scheme=https&interval=1s&family=6&weight=2&models=a,b&events=auto&zone=z", ""},
		{"dns://[fd00::1]:8000", ""},
		{"srv://_http._tcp.vllm", ""},
		{"k8s://vllm", ""},
		{"k8s://models/vllm:http?scheme=https&server_name=vllm", ""},
		{"k8s://vllm:8000", ""},
		{"", "names no known source"},
		{"http://a:1", "names no known source"},
		{"dns:fleet:80", "want dns://"},
		{"dns://fleet", "want dns://NAME:PORT"},
		{"dns://fleet:http", `port "http"`},
		{"dns://fleet:80?interval=1ms", "interval"},
		{"dns://fleet:80?scheme=ftp&weight=x&family=5", `family: "5"`},
		{"dns://fleet:80?weight=-1", "weight: -1"},
		{"dns://fleet:80?ca_file=x", "ca_file"},
		{"dns://fleet:80?api_key_file=/nowhere", "api_key_file"},
		{"dns://fleet:80?wieght=1", "wieght: no such key: want one of"},
		{"dns://fleet:80?zone=a&zone=b", "zone: given 2 times"},
		{"dns://fleet:80?%zz", "can't be read"},
		{"srv://name:80", "want srv://NAME"},
		{"file:", "want file:PATH"},
		{"file:x?interval=1s", "no such key"},
		{"k8s://", "want k8s://"},
		{"k8s://vllm:", "want k8s://"},
		{"k8s://UPPER/vllm", `namespace "UPPER"`},
		{"k8s://a/b/c", "want k8s://"},
		{"k8s://vllm:port_name", `port "port_name"`},
		{strings.Repeat("x", maxSpecBytes+1), "bytes"},
	} {
		s, err := Parse(c.spec, Options{})
		switch {
		case c.fault == "" && err != nil:
			t.Errorf("%s: %v", c.spec, err)
		case c.fault == "" && s.String() != c.spec:
			t.Errorf("%s calls itself %s", c.spec, s)
		case c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)):
			t.Errorf("%.60s: %v, want a fault about %q", c.spec, err, c.fault)
		}
	}
}

func TestEveryFaultOfASpecIsTold(t *testing.T) {
	_, err := Parse("dns://fleet:0?scheme=ftp&interval=soon&nothing=1", Options{})
	for _, want := range []string{"port", "scheme", "interval", "nothing"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("k8s://a/b:http?scheme=https")
	f.Add("dns://[::1]:80?interval=3s")
	f.Fuzz(func(t *testing.T, spec string) {
		if strings.Contains(spec, "api_key_file") {
			return // it would read any file
		}
		if s, err := Parse(spec, Options{}); err == nil && s.String() != spec {
			t.Errorf("%q calls itself %q", spec, s)
		}
	})
}
