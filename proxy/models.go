package proxy

import (
	"encoding/json"
	"net/http"

	"kvca/proxy/backend"
)

const modelsPrefix = "/v1/models/"

// serveModels answers /v1/models and /v1/models/{model}: what the backends list,
// merged, and the aliases under their own names.
func (p *Proxy) serveModels(w http.ResponseWriter, r *http.Request) {
	id := requestID(r.Header)
	w.Header().Set("X-Request-Id", id)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		(&apiError{status: http.StatusMethodNotAllowed, code: "method_not_allowed", message: "The list of models is read with GET."}).write(w, openAIStyle, id)
		return
	}
	cards := p.cards()
	if r.URL.Path == "/v1/models" {
		writeJSON(w, http.StatusOK, struct {
			Object string              `json:"object"`
			Data   []backend.ModelCard `json:"data"`
		}{"list", cards})
		return
	}
	name := r.URL.Path[len(modelsPrefix):]
	for _, card := range cards {
		if card.ID == name {
			writeJSON(w, http.StatusOK, card)
			return
		}
	}
	unknownModel(name, p.config().models(p.pool)).write(w, openAIStyle, id)
}

// cards are the models' cards; an alias has the card of its model with the alias
// for a name and the model for a root.
func (p *Proxy) cards() []backend.ModelCard {
	cards := p.pool.ModelCards()
	if cards == nil {
		cards = []backend.ModelCard{}
	}
	own := len(cards)
	for alias, model := range p.config().Aliases {
		for _, card := range cards[:own] {
			if card.ID == model {
				card.ID, card.Root = alias, model
				cards = append(cards, card)
				break
			}
		}
	}
	return cards
}

// writeJSON answers with v, which must be a type that encodes.
func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(b, '\n')) // a client that is gone loses nothing
}
