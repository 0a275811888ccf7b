package backend

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

// ModelCard is what engines say of a model at /v1/models.
type ModelCard struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"`
	OwnedBy     string `json:"owned_by"`
	Root        string `json:"root,omitempty"`
	Parent      string `json:"parent,omitempty"` // the base of a LoRA adapter
	MaxModelLen int64  `json:"max_model_len,omitempty"`
}

// fetchCards reads the engine's model list. One that has none answers an empty
// list: its models are configured.
func (b *Backend) fetchCards(ctx context.Context) ([]ModelCard, error) {
	var list struct{ Data []json.RawMessage }
	status, err := b.get(ctx, "/v1/models", func(body []byte) error { return json.Unmarshal(body, &list) })
	switch {
	case err != nil:
		return nil, fmt.Errorf("read /v1/models: %w", err)
	case status != http.StatusOK && !absent(status):
		return nil, fmt.Errorf("read /v1/models: status %d", status)
	}
	var cards []ModelCard
	for _, raw := range list.Data {
		if c := readCard(raw); c.ID != "" && len(c.ID) <= maxModelBytes && len(cards) < maxModels {
			cards = append(cards, c)
		}
	}
	return cards, nil
}

// readCard reads one card. Of one that has odd members the name is kept: it is
// what requests go by, and no reason to doubt the others.
func readCard(raw json.RawMessage) ModelCard {
	var c ModelCard
	if json.Unmarshal(raw, &c) == nil {
		return c
	}
	var name struct{ ID string }
	if json.Unmarshal(raw, &name) != nil {
		return ModelCard{}
	}
	return ModelCard{ID: name.ID, Object: "model"}
}

func cardNames(cards []ModelCard) []string {
	names := make([]string, 0, len(cards))
	for _, c := range cards {
		names = append(names, c.ID)
	}
	return names
}

// setCards takes in what the engine lists, and reports whether the names changed, and
// whether they or what they stand on did. A configured list is the list, whatever the engine says.
func (b *Backend) setCards(cards []ModelCard) (names, bases bool) {
	b.mu.Lock()
	bases = !slices.EqualFunc(b.engine.cards, cards, func(a, b ModelCard) bool { return a.ID == b.ID && a.Parent == b.Parent })
	b.engine.cards = cards
	configured := len(b.config.Models) > 0
	b.mu.Unlock()
	names = !configured && b.serve(cardNames(cards))
	return names, names || bases
}

// otherModels reports whether what the engine lists now comes from another engine
// than what it listed before: none of its base models is left, or one of them has
// other weights. Adapters come and go while an engine runs.
func (b *Backend) otherModels(cards []ModelCard) bool {
	b.mu.Lock()
	before := baseModels(b.engine.cards)
	b.mu.Unlock()
	after := baseModels(cards)
	if len(before) == 0 || len(after) == 0 {
		return false
	}
	kept := false
	for name, root := range after {
		was, known := before[name]
		if known && root != "" && was != "" && root != was {
			return true
		}
		kept = kept || known
	}
	return !kept
}

// baseModels are the weights of the models that are no adapters, by name.
func baseModels(cards []ModelCard) map[string]string {
	roots := make(map[string]string)
	for _, c := range cards {
		if c.Parent == "" || c.Parent == c.ID {
			roots[c.ID] = c.Root
		}
	}
	return roots
}

// serve sets the names that the backend serves and reports whether they changed.
// Names once served stay known, so that clients of a model whose last backend is
// away read 503, not 404; maxModels bounds them: beyond, one that is served no more
// is forgotten for each new one, as adapters come and go for months.
func (b *Backend) serve(names []string) bool {
	names = distinct(slices.Clone(names))
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.Equal(names, b.engine.models) {
		return false
	}
	b.engine.models = names
	if b.engine.everServed == nil {
		b.engine.everServed = make(map[string]bool)
	}
	for _, n := range names {
		b.engine.everServed[n] = true
	}
	for n := range b.engine.everServed {
		if len(b.engine.everServed) <= maxModels {
			break
		}
		if _, served := slices.BinarySearch(names, n); !served {
			delete(b.engine.everServed, n)
		}
	}
	return true
}

// ModelCards merges what the backends list, by name: the first backend's card in
// the order of IDs, with the least max_model_len of all, which a request may rely
// on wherever it lands.
func (p *Pool) ModelCards() []ModelCard {
	p.mu.Lock()
	backends := p.sorted()
	p.mu.Unlock()
	merged := make(map[string]ModelCard)
	for _, b := range backends {
		for _, c := range b.ownCards() {
			merged[c.ID] = mergeCards(merged[c.ID], c)
		}
	}
	cards := make([]ModelCard, 0, len(merged))
	for _, c := range merged {
		cards = append(cards, c)
	}
	slices.SortFunc(cards, func(a, b ModelCard) int { return cmp.Compare(a.ID, b.ID) })
	return cards
}

// ownCards has a card for each name that the backend serves.
func (b *Backend) ownCards() []ModelCard {
	b.mu.Lock()
	defer b.mu.Unlock()
	cards := make([]ModelCard, 0, len(b.engine.models))
	for _, name := range b.engine.models {
		card := ModelCard{ID: name}
		if i := slices.IndexFunc(b.engine.cards, func(c ModelCard) bool { return c.ID == name }); i >= 0 {
			card = b.engine.cards[i]
		}
		cards = append(cards, card)
	}
	return cards
}

func mergeCards(a, b ModelCard) ModelCard {
	length := a.MaxModelLen
	if length == 0 || (b.MaxModelLen > 0 && b.MaxModelLen < length) {
		length = b.MaxModelLen
	}
	return ModelCard{
		ID: b.ID, Object: "model",
		Created:     cmp.Or(a.Created, b.Created),
		OwnedBy:     ownedBy(a, b),
		Root:        cmp.Or(a.Root, b.Root),
		Parent:      cmp.Or(a.Parent, b.Parent),
		MaxModelLen: length,
	}
}

// ownedBy prefers an engine's word to the gateway's own.
func ownedBy(a, b ModelCard) string {
	if a.OwnedBy != "" && a.OwnedBy != ownerUnknown {
		return a.OwnedBy
	}
	return cmp.Or(b.OwnedBy, ownerUnknown)
}

// ownerUnknown stands in for models that no engine has described.
const ownerUnknown = "kvca"
