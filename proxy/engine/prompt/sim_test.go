package prompt

import (
	"testing"

	"kvca/bench/engine"
)

func TestSimulatedEngineTellsTheTokensItComputes(t *testing.T) {
	sim := engine.NewServer(engine.ServerConfig{Model: "m"})
	sim.Start(t.Context())
	t.Cleanup(sim.Close)
	e := &double{id: "sim", handler: sim}
	s := newService(t, Config{})
	r := chat(1, e)
	r.Body = []byte(`{"tools":[{"type":"function","function":{"name":"f","parameters":{"z":1,"a":2}}}],"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"Grüße"}],"seed":1}`)
	expected, err := engine.ChatPrompt(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	a, f := s.Tokens(t.Context(), r)
	if f != nil || len(a.Prompt.Tokens) != expected.Tokens() {
		t.Errorf("got %d tokens, %v; want %d", len(a.Prompt.Tokens), f, expected.Tokens())
	}
	if report := s.SelfTest(t.Context(), "m", []Engine{e}); report.Way != "render" && report.Way != "tokenize" {
		t.Errorf("report is %+v", report)
	}
}
