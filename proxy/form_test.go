package proxy

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"kvca/router"
)

// formOf is a form of fields, in order; a name that begins with @ is a file.
func formOf(t testing.TB, fields ...string) (body, kind string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i+1 < len(fields); i += 2 {
		var part io.Writer
		var err error
		if name, file := strings.CutPrefix(fields[i], "@"); file {
			part, err = w.CreateFormFile(name, `a "b".mp3`)
		} else {
			part, err = w.CreateFormField(name)
		}
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(part, fields[i+1])
	}
	w.Close()
	return b.String(), w.FormDataContentType()
}

func TestAFormGoesToItsModelAndPassesByteForByte(t *testing.T) {
	g := newRig(t, 1, func(c *Config, _ *router.Config, _ *poolConfig) { c.Aliases = map[string]string{"whisper-1": "w"} })
	ears := g.addEngine("ears", "w")
	g.waitReady()
	g.await("both models are known", func() bool { return len(g.pool.Models()) == 2 })
	var got atomic.Pointer[string]
	var active atomic.Int64
	for _, e := range g.engines {
		e.answer(func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			text := string(b)
			got.Store(&text)
			active.Store(g.ledger.Load(g.facts(e.id).Slot).Active)
			io.WriteString(w, "a text")
		})
	}
	audio := long(1, 200_000) + "\r\n--model"
	for _, path := range []string{"/v1/audio/transcriptions", "/v1/audio/translations", "/v1/images/edits", "/v1/images/variations"} {
		body, kind := formOf(t, "@file", audio, "model", "w", "language", "de")
		if text := g.expect(200, path, body, "Content-Type", kind); text != "a text" || *got.Load() != body || active.Load() != 1 {
			t.Errorf("%s: answered %q, active %d, same body %v", path, text, active.Load(), *got.Load() == body)
		}
	}
	body, kind := formOf(t, "model", "whisper-1", "@file", audio)
	g.expect(200, "/v1/audio/transcriptions", body, "Content-Type", kind)
	if want := strings.Replace(body, "whisper-1", "w", 1); *got.Load() != want {
		t.Errorf("the alias was spliced to %.300q", *got.Load())
	}
	if ears.served.Load() != 5 {
		t.Errorf("%d of 5 forms went where their model is", ears.served.Load())
	}
	none, kind := formOf(t, "@file", audio)
	if code := codeOf(t, g.expect(400, "/v1/audio/transcriptions", none, "Content-Type", kind)); code != "missing_model" {
		t.Errorf("no model: code %s", code)
	}
	two, kind := formOf(t, "model", "w", "model", "m")
	if code := codeOf(t, g.expect(400, "/v1/audio/transcriptions", two, "Content-Type", kind)); code != "invalid_form" {
		t.Errorf("two models: code %s", code)
	}
	other, kind := formOf(t, "model", "nope")
	if code := codeOf(t, g.expect(404, "/v1/audio/transcriptions", other, "Content-Type", kind)); code != "model_not_found" {
		t.Errorf("unknown model: code %s", code)
	}
}

func TestSpeechAndTheLikeAreRoutedByModel(t *testing.T) {
	g := newRig(t, 1)
	g.engines[0].answer(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "audio/mpeg")
		io.WriteString(w, "ID3\x00\xff"+r.URL.Path)
	})
	for _, path := range []string{
		"/v1/audio/speech", "/v1/images/generations", "/pooling", "/classify", "/v1/classify", "/score", "/rerank", "/v2/rerank",
		"/v1/tokenize", "/v1/detokenize",
	} {
		if got := g.expect(200, path, `{"model":"m","input":"x"}`); got != "ID3\x00\xff"+path {
			t.Errorf("%s: %q", path, got)
		}
		if code := codeOf(t, g.expect(404, path, `{"model":"x"}`)); code != "model_not_found" {
			t.Errorf("%s: code %s", path, code)
		}
	}
}

func TestFieldsOfForms(t *testing.T) {
	const b = "--b\r\n"
	field := func(value string) string {
		return "Content-Disposition: form-data; name=\"model\"\r\n\r\n" + value + "\r\n"
	}
	for body, want := range map[string][]string{
		"":                       {},
		b + field("m") + "--b--": {"m"},
		"before\r\n" + b + field("m") + "--b--\r\nafter":                 {"m"},
		"--b \t\r\n" + field("m") + "--b":                                {}, // cut off
		b + field("") + "--b--":                                          {""},
		b + field("a") + b + field("b") + "--b--":                        {"a", "b"},
		b + field("a\r\n--bb") + "--b--":                                 {"a\r\n--bb"},
		b + "\r\nno header\r\n" + b + field("m") + "--b--":               {"m"},
		b + "\r\n" + b + field("m") + "--b--":                            {"m"},
		b + "content-disposition:form-data;name=model\r\n\r\nm\r\n--b--": {"m"},
		b + "Content-Disposition: form-data; name=x\r\n\r\nm\r\n--b--":   {},
		b + "Content-Disposition: ;;;\r\n\r\nm\r\n--b--":                 {},
		b + strings.Repeat("x", maxPartHeader) + "\r\n\r\nm\r\n--b--":    {},
		"--b--" + field("m"):                                             {},
	} {
		got := []string{}
		for _, span := range formFields([]byte(body), "b", "model") {
			got = append(got, body[span[0]:span[1]])
		}
		if strings.Join(got, "|") != strings.Join(want, "|") || len(got) != len(want) {
			t.Errorf("%.100q: %q, want %q", body, got, want)
		}
	}
}

// Whatever the form, the spans are in order and within it; where Go's own reader sees
// a whole form, it sees the same fields.
func FuzzFormFields(f *testing.F) {
	body, _ := formOf(f, "model", "m", "@file", "x\r\n--y")
	f.Add([]byte(body), "b")
	f.Add([]byte("--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n--b--\r\n"), "b")
	f.Add([]byte("--b\r\n\r\n\r\n--b--"), "b")
	f.Fuzz(func(t *testing.T, body []byte, boundary string) {
		last := 0
		var got []string
		for _, span := range formFields(body, boundary, "model") {
			if span[0] < last || span[1] < span[0] || span[1] > len(body) {
				t.Fatalf("spans %v of %d bytes", span, len(body))
			}
			last = span[1]
			got = append(got, string(body[span[0]:span[1]]))
		}
		theirs, whole := readForm(body, boundary)
		if whole && strings.Join(got, "\x00") != strings.Join(theirs, "\x00") {
			t.Fatalf("fields %q, but Go reads %q", got, theirs)
		}
	})
}

// readForm reads the fields by Go's reader. It takes bare line feeds, folded and long
// headers, which engines do not: such forms are no cases.
func readForm(body []byte, boundary string) (fields []string, whole bool) {
	if bytes.Contains(body, []byte("\n ")) || bytes.Contains(body, []byte("\n\t")) {
		return nil, false
	}
	if boundary == "" || bytes.Count(body, []byte("\n")) != bytes.Count(body, []byte("\r\n")) || strings.TrimSpace(boundary) != boundary || len(body) > maxPartHeader {
		return nil, false
	}
	r := multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		part, err := r.NextRawPart()
		if err == io.EOF {
			return fields, true
		}
		if err != nil {
			return nil, false
		}
		value, err := io.ReadAll(part)
		if err != nil {
			return nil, false
		}
		if len(part.Header["Content-Disposition"]) > 1 {
			return nil, false
		}
		// Go wants "form-data" there, engines do not look.
		if _, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition")); err == nil && params["name"] == "model" {
			fields = append(fields, string(value))
		}
	}
}
