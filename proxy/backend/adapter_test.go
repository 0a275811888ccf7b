package backend

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// listing is /v1/models as vLLM writes it: a base model and adapters on top.
func listing(root string, base string, adapters ...string) string {
	cards := []string{fmt.Sprintf(`{"id":%q,"object":"model","created":1764489247,"owned_by":"vllm","root":%q,"parent":null,"max_model_len":32768,"permission":[]}`, base, root)}
	for _, a := range adapters {
		cards = append(cards, fmt.Sprintf(`{"id":%q,"object":"model","created":1764489247,"owned_by":"vllm","root":"/lora/%s","parent":%q,"max_model_len":null,"permission":[]}`, a, a, base))
	}
	return `{"object":"list","data":[` + strings.Join(cards, ",") + `]}`
}

func (e *engine) lists(text string) { e.set(func(e *engine) { e.listing = text }) }

// serving are the backends that a model's requests may go to.
func (f *fleet) serving(model string) string {
	synctest.Wait()
	list, _ := f.Model(model)
	var ids []string
	for _, b := range list {
		ids = append(ids, b.ID)
	}
	return strings.Join(ids, " ")
}

func TestAdaptersAreFollowedWithoutLoad(t *testing.T) {
	inFleet(t, 2, PoolConfig{}, func(t *testing.T, f *fleet) {
		time.Sleep(time.Minute)
		f.engines["a"].lists(listing("/m", "m", "french"))
		time.Sleep(7 * time.Second)
		if got := f.serving("french"); got != "a" {
			t.Fatalf("french is served by %q, want a", got)
		}
		if !f.IsAdapter("french") || f.IsAdapter("m") {
			t.Error("who is an adapter is not known")
		}
		f.engines["b"].lists(listing("/m", "m", "french", "greek"))
		f.engines["a"].lists(listing("/m", "m"))
		time.Sleep(7 * time.Second)
		if french, m := f.serving("french"), f.serving("m"); french != "b" || m != "a b" {
			t.Errorf("french is served by %q, the base model by %q", french, m)
		}
		if f.slots.voided("a")+f.slots.voided("b") != 0 {
			t.Error("adapters that come and go are no restart")
		}
	})
}

func TestAnEngineThatLacksAnAdapterIsBelievedAtOnce(t *testing.T) {
	inFleet(t, 2, PoolConfig{}, func(t *testing.T, f *fleet) {
		for _, id := range []string{"a", "b"} {
			f.engines[id].lists(listing("/m", "m", "french"))
		}
		time.Sleep(7 * time.Second)
		e, asked := f.engines["a"], f.engines["a"].asked("/v1/models")
		e.lists(listing("/m", "m"))
		f.backend("a").Lacks("french")
		if got := f.serving("french"); got != "b" {
			t.Fatalf("served by %q, want b", got)
		}
		time.Sleep(1500 * time.Millisecond)
		if e.asked("/v1/models") == asked {
			t.Error("its list was not read again")
		}
		e.lists(listing("/m", "m", "french"))
		f.backend("a").Lacks("never heard of")
		time.Sleep(7 * time.Second)
		if got := f.serving("french"); got != "a b" {
			t.Errorf("loaded again, it is served by %q", got)
		}
		asked = e.asked("/v1/models")
		for range 1000 {
			f.backend("a").Lacks("french")
			time.Sleep(time.Millisecond)
		}
		if got := e.asked("/v1/models") - asked; got > 2 {
			t.Errorf("its list was read %d times in a second", got)
		}
	})
}

func TestNothingIsTakenOffAConfiguredList(t *testing.T) {
	inFleet(t, 1, PoolConfig{}, func(t *testing.T, f *fleet) {
		f.add(Config{ID: "x", URL: "http://a:80", Models: []string{"mine"}})
		f.backend("x").Lacks("mine")
		if got := f.serving("mine"); got != "x" {
			t.Errorf("served by %q, want x", got)
		}
	})
}

func TestWhatSaysThatThereIsNoSuchModel(t *testing.T) {
	for body, want := range map[string]bool{
		`{"error":{"message":"The model ` + "`french`" + ` does not exist.","type":"NotFoundError","param":"model","code":404}}`:     true,
		`{"object":"error","message":"The model ` + "`french`" + ` does not exist.","type":"NotFoundError","param":null,"code":404}`: true,
		`{"error":{"message":"no","type":"invalid_request_error","param":null,"code":"model_not_found"}}`:                            true,
		`{"error":{"message":"model 'french' not found","code":404}}`:                                                                true,
		`{"error":{"message":"The model ` + "`greek`" + ` does not exist.","type":"NotFoundError","code":404}}`:                      false,
		`{"error":{"message":"Response with id 'resp_french' not found.","type":"NotFoundError","code":404}}`:                        false,
		`{"detail":"Not Found"}`: false, `french does not exist`: false, `{"error":"french"}`: false, `{"error":{"error":{"code":"model_not_found"}}}`: false, "": false, "null": false,
	} {
		if got := saysNoModel([]byte(body), "french"); got != want {
			t.Errorf("%s: %v", body, got)
		}
	}
	if saysNoModel([]byte("{\"error\":{\"message\":\"The model `` does not exist.\"}}"), "") {
		t.Error("no model is no model to lack")
	}
}

func TestARefusalCanBeReadAfterItWasLookedAt(t *testing.T) {
	inFleet(t, 1, PoolConfig{}, func(t *testing.T, f *fleet) {
		refusal := "{\"error\":{\"message\":\"The model `french` does not exist.\",\"code\":404}}"
		for name, body := range map[string]string{"short": refusal, "long": refusal + strings.Repeat(" ", 3*maxRefusalBytes)} {
			f.engines["a"].set(func(e *engine) { e.refusal = body })
			resp, err := f.backend("a").Do(t.Context(), http.MethodPost, "/v1/chat/completions", http.Header{}, []byte("{}"))
			if err != nil {
				t.Fatal(err)
			}
			lacks := LacksModel(resp, "french")
			got, err := io.ReadAll(resp.Body)
			if !lacks || err != nil || string(got) != body {
				t.Errorf("%s: lacks %v, read %d of %d bytes, %v", name, lacks, len(got), len(body), err)
			}
			if err := resp.Body.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

func FuzzSaysNoModel(f *testing.F) {
	f.Add([]byte("{\"error\":{\"message\":\"The model `m` does not exist.\",\"code\":404}}"), "m")
	f.Fuzz(func(t *testing.T, body []byte, model string) {
		if saysNoModel(body, model) && !strings.Contains(string(body), "{") {
			t.Fatal("no object says so")
		}
	})
}

// Adapters come and go for months.
func TestModelsThatWereServedOnceAreBounded(t *testing.T) {
	inFleet(t, 1, PoolConfig{}, func(t *testing.T, f *fleet) {
		b := f.backend("a")
		for i := range 3 * maxModels {
			b.serve([]string{"m", fmt.Sprint("adapter-", i)})
		}
		f.mu.Lock()
		f.publish()
		f.mu.Unlock()
		if got := f.serving(fmt.Sprint("adapter-", 3*maxModels-1)); got != "a" {
			t.Errorf("the last one is served by %q", got)
		}
		if _, known := f.Model("m"); !known || len(b.engine.everServed) > maxModels {
			t.Errorf("m known: %v; %d names are remembered", known, len(b.engine.everServed))
		}
	})
}
