package proxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	smallChat = `{"model":"m","messages":[]}` // 27 bytes, 0x1b
	chatLine  = "POST /v1/chat/completions HTTP/1.1"
)

// post1 is a request of HTTP/1 for a chat; header lines end in CRLF.
func post1(header, body string) string {
	return chatLine + "\r\nHost: x\r\nConnection: close\r\n" + header + "\r\n" + body
}

// hidden is a request that must never be one.
const hidden = "POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Length: 25\r\n\r\n" + `{"model":"m","input":"x"}`

// However a request is framed, the engine is sent what the gateway understood, or
// nothing. want are the bodies it may see; some lists of them.
func TestFramingIsUnderstoodInOneWay(t *testing.T) {
	g, engine := newWireRig(t)
	chunked := func(size string, end string) string { return size + smallChat + end }
	const te = "Transfer-Encoding: chunked\r\n"
	ok := []string{smallChat}
	for _, c := range []struct {
		name, payload string
		want          []string
		orNothing     bool
	}{
		{"plain", post1("Content-Length: 27\r\n", smallChat), ok, false},
		{"chunked", post1(te, chunked("1b\r\n", "\r\n0\r\n\r\n")), ok, false},
		{"length and chunks", post1("Content-Length: 5\r\n"+te, chunked("1b\r\n", "\r\n0\r\n\r\n")), ok, true},
		{"chunks end before the length", post1("Content-Length: 200\r\n"+te, "0\r\n\r\n"+hidden), nil, false},
		{"lengths that agree", post1("Content-Length: 27\r\nContent-Length: 27\r\n", smallChat), ok, true},
		{"lengths that don't", post1("Content-Length: 27\r\nContent-Length: 5\r\n", smallChat), nil, false},
		{"lengths in one line", post1("Content-Length: 27, 27\r\n", smallChat), ok, true},
		{"length with a sign", post1("Content-Length: +27\r\n", smallChat), nil, false},
		{"length below zero", post1("Content-Length: -1\r\n", smallChat), nil, false},
		{"length in hex", post1("Content-Length: 0x1b\r\n", smallChat), nil, false},
		{"length with a gap", post1("Content-Length: 2 7\r\n", smallChat), nil, false},
		{"length of nothing", post1("Content-Length: \r\n", smallChat), nil, false},
		{"endless length", post1("Content-Length: 99999999999999999999\r\n", smallChat), nil, false},
		{"space before the colon", post1("Content-Length : 27\r\n", smallChat), nil, false},
		{"unknown coding", post1("Content-Length: 27\r\nTransfer-Encoding: xchunked\r\n", smallChat), nil, false},
		{"two codings", post1("Content-Length: 27\r\nTransfer-Encoding: gzip, chunked\r\n", smallChat), nil, false},
		{"chunked twice", post1(te+te, chunked("1b\r\n", "\r\n0\r\n\r\n")), nil, false},
		{"chunked and identity", post1(te+"Transfer-Encoding: identity\r\n", chunked("1b\r\n", "\r\n0\r\n\r\n")), nil, false},
		{"coding in quotes", post1("Content-Length: 27\r\nTransfer-Encoding: \"chunked\"\r\n", smallChat), nil, false},
		{"coding, space before the colon", post1("Content-Length: 27\r\nTransfer-Encoding : chunked\r\n", smallChat), nil, false},
		{"coding, vertical tab", post1("Content-Length: 27\r\nTransfer-Encoding:\x0bchunked\r\n", smallChat), nil, false},
		{"coding behind a carriage return", post1("Content-Length: 27\r\nX: a\rTransfer-Encoding: chunked\r\n", smallChat), nil, false},
		{"coding behind a zero", post1("Content-Length: 27\r\nX: a\x00\r\n"+te, smallChat), nil, false},
		{"coding on a folded line", post1("Transfer-Encoding:\r\n chunked\r\n", chunked("1b\r\n", "\r\n0\r\n\r\n")), ok, true},
		{"coding in HTTP/1.0", strings.Replace(post1(te+"Content-Length: 27\r\n", smallChat), "HTTP/1.1", "HTTP/1.0", 1), ok, true},
		{"bare line feeds", strings.ReplaceAll(post1("Content-Length: 27\r\n", ""), "\r\n", "\n") + smallChat, ok, true},
		{"chunk with an extension", post1(te, chunked("1b;a=\"b\"\r\n", "\r\n0;c\r\n\r\n")), ok, true},
		{"chunk with an endless extension", post1(te, chunked("1b;"+strings.Repeat("a", 20<<10)+"\r\n", "\r\n0\r\n\r\n")), nil, false},
		{"chunk with a line feed in its extension", post1(te, chunked("1b;a\nb\r\n", "\r\n0\r\n\r\n")), nil, false},
		{"chunk lines end in a line feed", post1(te, chunked("1b\n", "\n0\n\n")), ok, true},
		{"chunk size with a prefix", post1(te, chunked("0x1b\r\n", "\r\n0\r\n\r\n")), nil, false},
		{"chunk size with a sign", post1(te, chunked("+1b\r\n", "\r\n0\r\n\r\n")), nil, false},
		{"endless chunk size", post1(te, chunked("1000000000000001b\r\n", "\r\n0\r\n\r\n")), nil, false},
		{"chunk longer than its size", post1(te, chunked("1a\r\n", "\r\n0\r\n\r\n")), nil, false},
		{"chunk shorter than its size", post1(te, chunked("1c\r\n", "\r\n0\r\n\r\n")), nil, false},
		{"trailers", post1(te+"Trailer: X-Evil\r\n", chunked("1b\r\n", "\r\n0\r\nX-Evil: 1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n")), ok, true},
		{"a request in a refused body", strings.Replace(post1(fmt.Sprintf("Content-Length: %d\r\n", len(hidden)), hidden), "/v1/chat/completions", "/nothing", 1), nil, false},
		{"a request in the body of a GET", strings.Replace(post1(fmt.Sprintf("Content-Length: %d\r\n", len(hidden)), hidden), chatLine, "GET /v1/models HTTP/1.1", 1), nil, false},
		{"a request in the body of another method", strings.Replace(post1(fmt.Sprintf("Content-Length: %d\r\n", len(hidden)), hidden), "POST", "GET", 1), nil, false},
		{"a request in a coded body", post1(fmt.Sprintf("Content-Encoding: gzip\r\nContent-Length: %d\r\n", len(hidden)), hidden), nil, false},
		{"expectation", post1("Expect: 100-continue\r\nContent-Length: 27\r\n", smallChat), ok, false},
		{"expectation of something", post1("Expect: more\r\nContent-Length: 27\r\n", smallChat), nil, false},
		{"upgrade to HTTP/2", strings.Replace(post1("Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\nContent-Length: 27\r\n", smallChat), "close", "Upgrade, HTTP2-Settings, close", 1), ok, true},
		{"upgrade to a web socket", strings.Replace(post1("Upgrade: websocket\r\nContent-Length: 27\r\n", smallChat), "close", "Upgrade, close", 1), ok, true},
		{"no version", "POST /v1/chat/completions\r\n\r\n" + smallChat, nil, false},
		{"two versions", strings.Replace(post1("Content-Length: 27\r\n", smallChat), "HTTP/1.1", "HTTP/1.1 HTTP/1.1", 1), nil, false},
		{"version 2 in the line", strings.Replace(post1("Content-Length: 27\r\n", smallChat), "HTTP/1.1", "HTTP/2.0", 1), nil, false},
		{"no host", strings.Replace(post1("Content-Length: 27\r\n", smallChat), "Host: x\r\n", "", 1), nil, false},
		{"two hosts", post1("Host: y\r\nContent-Length: 27\r\n", smallChat), nil, false},
		{"method with a tab", "POST\t" + post1("Content-Length: 27\r\n", smallChat)[5:], nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			statuses := g.raw(c.payload)
			var got []string
			for _, r := range engine.take(t) {
				if r.line != chatLine || r.has("X-Evil") {
					t.Errorf("the engine was sent %s with %q", r.line, r.header)
				}
				got = append(got, r.body)
			}
			if !slices.Equal(got, c.want) && (len(got) > 0 || !c.orNothing) {
				t.Errorf("the engine was sent %q, want %q (statuses %d)", got, c.want, statuses)
			}
			if len(statuses) == 0 || len(got) > 0 && statuses[0] != 200 || len(got) == 0 && c.name != "a request in the body of a GET" && statuses[0] < 400 {
				t.Errorf("answers %d", statuses)
			}
		})
	}
}

// No spelling of a path reaches another one of the engine than the gateway looked up.
func TestTargetsAreUnderstoodInOneWay(t *testing.T) {
	g, engine := newWireRig(t)
	g.engines[0].answer(answerResponse)
	g.expect(200, "/v1/responses", `{"model":"m","input":"hi"}`)
	engine.take(t)
	for _, c := range []struct {
		target string
		want   string // what the engine may see; "" for nothing
	}{
		{"/v1/chat/completions", "/v1/chat/completions"},
		{"/v1/chat/completions?a=%0d%0ab", "/v1/chat/completions?a=%0d%0ab"},
		{"http://evil.example/v1/chat/completions", "/v1/chat/completions"},
		{"http://evil.example:99/v1/chat/completions", "/v1/chat/completions"},
		{"http:/v1/chat/completions", "/v1/chat/completions"},
		{"http:v1/chat/completions", ""},
		{"//evil.example/v1/chat/completions", ""},
		{"/v1//chat/completions", ""},
		{"/v1/chat/completions/", ""},
		{"/v1/chat/completions#x", ""},
		{"/v1/chat/completions;x=1", ""},
		{"/v1/chat/completions%00", ""},
		{"/v1/chat/completions%0d%0aX-Evil:1", ""},
		{"/v1/chat/completions%3fa=b", ""},
		{"/./v1/chat/completions", ""},
		{"/v1/../v1/chat/completions", ""},
		{"/v1/%2e%2e/v1/chat/completions", ""},
		{"/v1/chat/completions/../../../admin", ""},
		{"/v1/chat/completions%2f..%2f..%2f..%2fadmin", ""},
		{`/v1\chat\completions`, ""},
		{"*", ""},
		{"x:443", ""},
		{"/v1/responses/resp_1/cancel", "/v1/responses/resp_1/cancel"},
		{"/v1/chat%2fcompletions", "/v1/chat/completions"},
		{"/v1/%63hat/completions?a=b", "/v1/chat/completions?a=b"},
		{"/v1/responses/resp_1/../../../admin", ""},
		{"/v1/responses/resp_1/..;/..;/admin", ""},
		{"/v1/responses/resp_1/%252e%252e/admin", ""},
		{`/v1/responses/resp_1/..\\..\\admin`, ""},
		{"/v1/responses/resp_1/%5c..%5cadmin", ""},
		{"/v1/responses/resp_1/a%0d%0ab", ""},
		{"/v1/responses/resp_1/%3fx", ""},
		{"/v1/responses/resp_1/...", ""},
		{"/v1/responses/resp_1/%2e%2e/%2e%2e/admin", ""},
		{"/v1/responses/resp_1%2f..%2f..%2fadmin", ""},
		{"/v1/responses/resp_1//admin", ""},
		{"/v1/responses//admin", ""},
		{"/v1/responses/../chat/completions", ""},
	} {
		payload := strings.Replace(post1("Content-Length: 27\r\n", smallChat), "/v1/chat/completions", c.target, 1)
		statuses := g.raw(payload)
		requests := engine.take(t)
		switch {
		case c.want == "" && len(requests) > 0:
			t.Errorf("%s: the engine was sent %s", c.target, requests[0].line)
		case c.want == "" && (len(statuses) != 1 || statuses[0] < 400):
			t.Errorf("%s: answers %d", c.target, statuses)
		case c.want != "" && (len(requests) != 1 || requests[0].line != "POST "+c.want+" HTTP/1.1"):
			t.Errorf("%s: the engine was sent %+v, want %s", c.target, requests, c.want)
		case c.want != "" && requests[0].values("Host")[0] != g.engines[0].Listener.Addr().String():
			t.Errorf("%s: the engine was sent the host %q", c.target, requests[0].values("Host"))
		}
	}
	for _, line := range []string{"CONNECT x:443 HTTP/1.1", "CONNECT /v1/chat/completions HTTP/1.1", "OPTIONS * HTTP/1.1", "TRACE /v1/chat/completions HTTP/1.1"} {
		g.raw(strings.Replace(post1("Content-Length: 27\r\n", smallChat), chatLine, line, 1))
		if requests := engine.take(t); len(requests) > 0 {
			t.Errorf("%s: the engine was sent %s", line, requests[0].line)
		}
	}
}

// What the gateway says of a request is its own word, whatever the client sends.
func TestNoHeaderOfAClientPassesForOneOfTheGateways(t *testing.T) {
	g, engine := newWireRig(t)
	for _, c := range []struct {
		name, header string
		refused      bool
	}{
		{"folded id", "X-Request-Id: a\r\n X-Evil: 1\r\n", false},
		{"two ids", "X-Request-Id: a\r\nX-Request-Id: b\r\n", false},
		{"id with a line end", "X-Request-Id: a%0d%0aX-Evil: 1\r\n", false},
		{"id with a carriage return", "X-Request-Id: a\rX-Evil: 1\r\n", true},
		{"id with a zero", "X-Request-Id: a\x00\r\n", true},
		{"id that is not ASCII", "X-Request-Id: \xff\xfe\r\n", false},
		{"trace with a control character", "Traceparent: 00-\x01\r\n", true},
		{"trace on folded lines", "Tracestate: a=b\r\n\tX-Evil: 1\r\n", false},
		{"forwarded", "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-For: 192.0.2.2\r\nX-Forwarded-Host: evil\r\nX-Forwarded-Proto: https\r\nForwarded: for=192.0.2.1\r\n", false},
		{"priority", "X-Gateway-Priority: 100\r\nx-gateway-priority: 100\r\n", false},
		{"hop by hop", "Connection: X-Request-Id, X-Forwarded-For, Content-Length, Host\r\nKeep-Alive: 1\r\nTE: trailers\r\nProxy-Connection: x\r\n", false},
		{"name with a space", "X Evil: 1\r\n", true},
		{"no name", ": 1\r\n", true},
		{"no colon", "X-Evil\r\n", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			statuses := g.raw(post1(c.header+"Content-Length: 27\r\n", smallChat))
			requests := engine.take(t)
			if c.refused {
				if len(requests) > 0 || len(statuses) != 1 || statuses[0] != 400 {
					t.Errorf("answers %d, the engine was sent %+v", statuses, requests)
				}
				return
			}
			if len(requests) != 1 || requests[0].body != smallChat {
				t.Fatalf("answers %d, the engine was sent %+v", statuses, requests)
			}
			r := requests[0]
			for name, want := range map[string]func(string) bool{
				"X-Request-Id":      fitID,
				"X-Forwarded-For":   func(v string) bool { return v == "127.0.0.1" },
				"X-Forwarded-Host":  func(v string) bool { return v == "x" },
				"X-Forwarded-Proto": func(v string) bool { return v == "http" },
				"Host":              func(v string) bool { return v == g.engines[0].Listener.Addr().String() },
			} {
				if v := r.values(name); len(v) != 1 || !want(v[0]) {
					t.Errorf("%s: %q", name, v)
				}
			}
			for _, name := range []string{"X-Evil", "Forwarded", "X-Gateway-Priority"} {
				if r.has(name) {
					t.Errorf("the engine was sent %s", name)
				}
			}
		})
	}
}

// The bound is on all headers together, however many they are.
func TestManySmallHeadersHaveABound(t *testing.T) {
	g, engine := newWireRig(t)
	many := func(n int) string { return strings.Repeat("a: b\r\n", n) }
	g.raw(post1(many(1000)+"Content-Length: 27\r\n", smallChat))
	if n := len(engine.take(t)); n != 1 {
		t.Errorf("1,000 headers: %d requests", n)
	}
	statuses := g.raw(post1(many(maxHeaderBytes/4)+"Content-Length: 27\r\n", smallChat))
	if n := len(engine.take(t)); n != 0 || !slices.Equal(statuses, []int{431}) {
		t.Errorf("too many headers: %d requests, answers %d", n, statuses)
	}
}

// HTTP/2 has no lines, so its fields can hold what ends one in HTTP/1.
func TestFieldsOfHTTP2BecomeNoLinesOfHTTP1(t *testing.T) {
	g, engine := newWireRig(t)
	pseudo := func(changes ...string) []string {
		p := []string{":method", "POST", ":scheme", "http", ":authority", "x", ":path", "/v1/chat/completions"}
		for i := 0; i < len(changes); i += 2 {
			if at := slices.Index(p, changes[i]); at >= 0 {
				p[at+1] = changes[i+1]
			}
		}
		return p
	}
	with := func(fields ...string) []string { return append(pseudo(), fields...) }
	for _, c := range []struct {
		name   string
		fields []string
		want   int
	}{
		{"plain", pseudo(), 1},
		{"length that is right", with("content-length", "27"), 1},
		{"length that is short", with("content-length", "5"), 0},
		{"length that is long", with("content-length", "99"), 0},
		{"lengths", with("content-length", "27", "content-length", "5"), -1},
		{"length with a sign", with("content-length", "+27"), -1},
		{"coding", with("transfer-encoding", "chunked"), -1},
		{"connection", with("connection", "x-forwarded-for"), -1},
		{"upgrade", with("upgrade", "h2c"), -1},
		{"another host", with("host", "evil"), -1},
		{"line end in a value", with("x-a", "b\r\nX-Evil: 1"), 0},
		{"line feed in a value", with("x-a", "b\nX-Evil: 1"), 0},
		{"request in a value", with("x-a", "b\r\n\r\n"+hidden), 0},
		{"zero in a value", with("x-a", "b\x00"), 0},
		{"line end in a name", with("x-a\r\nx-evil", "1"), 0},
		{"space in a name", with("x-evil 1", "1"), 0},
		{"colon in a name", with("x-a: b", "1"), 0},
		{"no name", with("", "1"), 0},
		{"capital letters", with("X-Evil", "1"), 0},
		{"pseudo field behind others", with("x-a", "b", ":path", "/admin"), 0},
		{"path twice", append([]string{":path", "/admin"}, pseudo()...), 0},
		{"unknown pseudo field", append([]string{":evil", "1"}, pseudo()...), 0},
		{"line end in the path", pseudo(":path", "/v1/chat/completions HTTP/1.1\r\nX-Evil: 1\r\n\r\n"), 0},
		{"space in the path", pseudo(":path", "/v1/chat/completions HTTP/1.1"), 0},
		{"absolute path", pseudo(":path", "http://evil/v1/chat/completions"), -1},
		{"no slash", pseudo(":path", "v1/chat/completions"), 0},
		{"star", pseudo(":path", "*"), 0},
		{"no path", pseudo(":path", ""), 0},
		{"line end in the method", pseudo(":method", "POST /admin HTTP/1.1\r\nX-Evil: 1\r\n\r\nPOST"), 0},
		{"space in the method", pseudo(":method", "POST /admin"), 0},
		{"line end in the authority", pseudo(":authority", "x\r\nX-Evil: 1"), 0},
		{"path in the authority", pseudo(":authority", "x/admin?"), -1},
		{"line end in the scheme", pseudo(":scheme", "http\r\nX-Evil: 1"), -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", g.client.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(5 * time.Second)) // a guard: it ends long before
			io.WriteString(conn, h2Preface+h2Frame(h2Settings, 0, 0, "")+
				h2Frame(h2Headers, h2EndHeaders, 1, h2Fields(c.fields...))+h2Frame(h2Data, h2EndStream, 1, smallChat))
			answered, err := h2Ended(conn, 1)
			requests := engine.take(t)
			for _, r := range requests {
				if r.line != chatLine || r.body != smallChat || r.has("X-Evil") {
					t.Errorf("the engine was sent %+v", r)
				}
			}
			if n := len(requests); c.want >= 0 && n != c.want || n > 1 || n == 1 && !answered {
				t.Errorf("the engine was sent %d requests; answered %v, %v", n, answered, err)
			}
		})
	}
}

// Fields behind the body are no more than its end.
func TestTrailersOfHTTP2StayHere(t *testing.T) {
	g, engine := newWireRig(t)
	conn, err := net.Dial("tcp", g.client.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	io.WriteString(conn, h2Preface+h2Frame(h2Settings, 0, 0, "")+
		h2Frame(h2Headers, h2EndHeaders, 1, h2Fields(":method", "POST", ":scheme", "http", ":authority", "x", ":path", "/v1/chat/completions"))+
		h2Frame(h2Data, 0, 1, smallChat)+h2Frame(h2Headers, h2EndHeaders|h2EndStream, 1, h2Fields("x-evil", "1", "content-length", "5")))
	if answered, err := h2Ended(conn, 1); !answered {
		t.Errorf("not answered: %v", err)
	}
	if r := engine.take(t); len(r) != 1 || r[0].body != smallChat || r[0].has("X-Evil") {
		t.Errorf("the engine was sent %+v", r)
	}
}

func answerResponse(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	io.WriteString(w, `{"id":"resp_1"}`)
}
