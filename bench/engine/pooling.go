package engine

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
)

// width is the length of an embedding unless the client asks for another.
const (
	width    = 16
	maxWidth = 4096
)

// embeddings costs the engine its prefill, without the cache.
func (c *call) embeddings() error {
	var q struct {
		Model      string          `json:"model"`
		Input      json.RawMessage `json:"input"`
		Format     string          `json:"encoding_format"`
		Dimensions *int            `json:"dimensions"`
	}
	if err := c.decode(&q); err != nil {
		return err
	}
	model, err := c.model(q.Model)
	if err != nil {
		return err
	}
	n := width
	if q.Dimensions != nil {
		if n = *q.Dimensions; n < 1 || n > maxWidth {
			return badRequest("dimensions", "dimensions must be from 1 to %d, got %d. (parameter=dimensions, value=%d)", maxWidth, n, n)
		}
	}
	list, err := prompts(q.Input, "input")
	if err != nil {
		return err
	}
	jobs, err := c.poolingJobs(model, list)
	if err != nil {
		return err
	}
	return c.answer(struct {
		ID      string           `json:"id"`
		Object  string           `json:"object"`
		Created int64            `json:"created"`
		Model   string           `json:"model"`
		Data    []map[string]any `json:"data"`
		Usage   usage            `json:"usage"`
	}{c.id("embd-"), "list", c.created(), model, vectors(jobs, n, q.Format == "base64"), promptUsage(jobs)})
}

// poolingJobs runs prompts that yield no text: one step past the last token, nothing cached.
func (c *call) poolingJobs(model string, list []textOrIDs) ([]*job, error) {
	jobs := make([]*job, len(list))
	for i, p := range list {
		if err := c.checkLength(len(p.ids), 1); err != nil {
			return nil, err
		}
		jobs[i] = c.s.newJob(i, wish{model: model, prompt: p.ids, maxTokens: 1, nocache: true})
		jobs[i].finish = "stop"
	}
	return jobs, c.complete(jobs)
}

func promptUsage(jobs []*job) usage {
	u := usageOf(jobs, 1)
	u.CompletionTokens, u.TotalTokens = 0, u.PromptTokens
	return u
}

func vectors(jobs []*job, n int, packed bool) []map[string]any {
	data := make([]map[string]any, len(jobs))
	for i, j := range jobs {
		v := direction(j.prompt.digest(0, nil, 1), n)
		data[i] = map[string]any{"index": i, "object": "embedding", "embedding": v}
		if packed {
			raw := make([]byte, 0, 4*n)
			for _, x := range v {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
			}
			data[i]["embedding"] = base64.StdEncoding.EncodeToString(raw)
		}
	}
	return data
}

// direction is a unit vector that depends on the seed.
func direction(seed uint64, n int) []float32 {
	v, sum := make([]float32, n), 0.0
	for i := range v {
		x := float64(mix(seed+uint64(i))>>11)/(1<<52) - 1
		v[i], sum = float32(x), sum+x*x
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

type pair struct {
	Model     string          `json:"model"`
	Query     string          `json:"query"`
	Documents []string        `json:"documents"`
	TopN      int             `json:"top_n"`
	Text1     json.RawMessage `json:"text_1"`
	Text2     json.RawMessage `json:"text_2"`
}

// relevance is between 0 and 1 and the same for the same two texts.
func relevance(a, b string) float64 {
	return float64(mix(tokens(nil).appendText(a+"\x00"+b).digest(0, nil, 1))>>11) / (1 << 53)
}

// pooled runs query and text together for each text.
func (c *call) pooled(name, query string, texts []string) (jobs []*job, model string, err error) {
	if model, err = c.model(name); err != nil {
		return nil, "", err
	}
	list := make([]textOrIDs, len(texts))
	for i, text := range texts {
		list[i].ids = tokens(nil).appendText("<|query|>" + query + text)
	}
	jobs, err = c.poolingJobs(model, list)
	return jobs, model, err
}

func (c *call) rerank() error {
	var q pair
	if err := c.decode(&q); err != nil {
		return err
	}
	if len(q.Documents) == 0 || len(q.Documents) > maxChoices {
		return badRequest("documents", "from 1 to %d documents, got %d. (parameter=documents)", maxChoices, len(q.Documents))
	}
	jobs, model, err := c.pooled(q.Model, q.Query, q.Documents)
	if err != nil {
		return err
	}
	type result struct {
		Index    int               `json:"index"`
		Document map[string]string `json:"document"`
		Score    float64           `json:"relevance_score"`
	}
	results := make([]result, len(jobs))
	for i, text := range q.Documents {
		results[i] = result{i, map[string]string{"text": text}, relevance(q.Query, text)}
	}
	slices.SortFunc(results, func(a, b result) int {
		if a.Score > b.Score {
			return -1
		}
		return 1
	})
	if q.TopN > 0 {
		results = results[:min(q.TopN, len(results))]
	}
	return c.answer(map[string]any{"id": c.id("rerank-"), "model": model, "usage": promptUsage(jobs), "results": results})
}

func (c *call) score() error {
	var q pair
	if err := c.decode(&q); err != nil {
		return err
	}
	first, err := prompts(q.Text1, "text_1")
	if err != nil {
		return err
	}
	second, err := prompts(q.Text2, "text_2")
	if err != nil {
		return err
	}
	texts := make([]string, len(second))
	for i, p := range second {
		texts[i] = p.text
	}
	jobs, model, err := c.pooled(q.Model, first[0].text, texts)
	if err != nil {
		return err
	}
	data := make([]map[string]any, len(jobs))
	for i, text := range texts {
		data[i] = map[string]any{"index": i, "object": "score", "score": relevance(first[0].text, text)}
	}
	return c.answer(map[string]any{
		"id": c.id("score-"), "object": "list", "created": c.created(), "model": model, "data": data, "usage": promptUsage(jobs),
	})
}
