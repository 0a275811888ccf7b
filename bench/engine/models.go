package engine

import (
	"slices"
	"sync"
)

// models is the list of names served; tests change it while the server runs.
type models struct {
	mu   sync.Mutex
	list []string
}

func newModels(cfg ServerConfig) *models {
	m := &models{}
	m.add(append([]string{cfg.Model}, cfg.Models...)...)
	return m
}

func (m *models) names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.list)
}

func (m *models) add(names ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range names {
		if n != "" && !slices.Contains(m.list, n) {
			m.list = append(m.list, n)
		}
	}
}

func (m *models) remove(names ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = slices.DeleteFunc(m.list, func(n string) bool { return slices.Contains(names, n) })
}

type modelCard struct {
	ID          string            `json:"id"`
	Object      string            `json:"object"`
	Created     int64             `json:"created"`
	OwnedBy     string            `json:"owned_by"`
	Root        string            `json:"root"`
	Parent      *string           `json:"parent"`
	MaxModelLen int               `json:"max_model_len"`
	Permission  []modelPermission `json:"permission"`
}

type modelPermission struct {
	ID                 string  `json:"id"`
	Object             string  `json:"object"`
	Created            int64   `json:"created"`
	AllowCreateEngine  bool    `json:"allow_create_engine"`
	AllowSampling      bool    `json:"allow_sampling"`
	AllowLogprobs      bool    `json:"allow_logprobs"`
	AllowSearchIndices bool    `json:"allow_search_indices"`
	AllowView          bool    `json:"allow_view"`
	AllowFineTuning    bool    `json:"allow_fine_tuning"`
	Organization       string  `json:"organization"`
	Group              *string `json:"group"`
	IsBlocking         bool    `json:"is_blocking"`
}

func (s *Server) modelCards() []modelCard {
	cards := []modelCard{}
	for _, name := range s.models.names() {
		created := s.born.Unix()
		cards = append(cards, modelCard{
			ID: name, Object: "model", Created: created, OwnedBy: "vllm", Root: name, MaxModelLen: s.cfg.MaxModelLen,
			Permission: []modelPermission{{
				ID: "modelperm-" + name, Object: "model_permission", Created: created, AllowSampling: true, AllowLogprobs: true,
				AllowView: true, Organization: "*",
			}},
		})
	}
	return cards
}
