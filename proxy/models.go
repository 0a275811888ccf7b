package proxy

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"kvca/proxy/backend"
)

const modelsPrefix = "/v1/models/"

// modelList is what the gateway answers by itself.
var modelList = &endpoint{path: "/v1/models", methods: []string{http.MethodGet, http.MethodHead}, local: (*exchange).listModels}

// listModels answers /v1/models and /v1/models/{model}: what the backends list,
// merged, and the aliases under their own names; of those what the client may use.
func (x *exchange) listModels() error {
	cards := x.cards()
	name, one := strings.CutPrefix(x.r.URL.Path, modelsPrefix)
	if !one {
		x.answerJSON(struct {
			Object string              `json:"object"`
			Data   []backend.ModelCard `json:"data"`
		}{"list", cards})
		return nil
	}
	for _, card := range cards {
		if card.ID == name {
			x.answerJSON(card)
			return nil
		}
	}
	return unknownModel(name, x.models())
}

func (x *exchange) answerJSON(v any) {
	x.status, x.started = http.StatusOK, true
	writeJSON(x.w, x.status, v)
}

// models are the names that the client may use, sorted.
func (x *exchange) models() []string {
	names := x.cfg.models(x.p.pool)
	return slices.DeleteFunc(names, func(name string) bool { return !x.permitted(x.cfg.real(name)) })
}

// cards are the models' cards; an alias has the card of its model with the alias
// for a name and the model for a root.
func (x *exchange) cards() []backend.ModelCard {
	cards := x.p.pool.ModelCards()
	if cards == nil {
		cards = []backend.ModelCard{}
	}
	cards = slices.DeleteFunc(cards, func(c backend.ModelCard) bool { return !x.permitted(c.ID) })
	own := len(cards)
	for alias, model := range x.cfg.Aliases {
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
