package proxy

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// tagList answers /api/tags by itself.
var tagList = &endpoint{path: "/api/tags", methods: []string{http.MethodGet, http.MethodHead}, style: ollamaStyle, local: (*exchange).listTags}

// defaultTag is what Ollama adds to a name that has no tag.
const defaultTag = ":latest"

// tagged is the name with its default tag, where backends know it only by that.
func (x *exchange) tagged(name string) string {
	if strings.Contains(name, ":") {
		return name
	}
	if _, known := x.p.pool.Model(x.cfg.real(name)); known {
		return name
	}
	if _, known := x.p.pool.Model(name + defaultTag); known {
		return name + defaultTag
	}
	return name
}

// ollamaModel is a model as Ollama lists it. Sizes and digests are the engines' own
// affair; clients want the members to be there.
type ollamaModel struct {
	Name       string        `json:"name"`
	Model      string        `json:"model"`
	ModifiedAt time.Time     `json:"modified_at"`
	Size       int64         `json:"size"`
	Digest     string        `json:"digest"`
	Details    ollamaDetails `json:"details"`
}

type ollamaDetails struct {
	ParentModel string   `json:"parent_model"`
	Format      string   `json:"format"`
	Family      string   `json:"family"`
	Families    []string `json:"families"`
}

// listTags lists the models that the client may use.
func (x *exchange) listTags() error {
	models := []ollamaModel{}
	for _, card := range x.cards() {
		models = append(models, ollamaModel{
			Name: card.ID, Model: card.ID, ModifiedAt: time.Unix(card.Created, 0).UTC(),
			Details: ollamaDetails{ParentModel: card.Root, Families: []string{}},
		})
	}
	slices.SortFunc(models, func(a, b ollamaModel) int { return strings.Compare(a.Name, b.Name) })
	x.answerJSON(struct {
		Models []ollamaModel `json:"models"`
	}{models})
	return nil
}
