package prompt

import (
	"fmt"
	"slices"
)

// Learn takes the tokens that the engine itself reports of a request's prompt, with
// its answer (prompt_token_ids). They are remembered, and what had been found for
// that prompt is held against them: a way that is wrong three times in twenty is
// used no more for the model. Any goroutine may call it; promptTokens is copied.
func (s *Service) Learn(r *Request, promptTokens []uint32) {
	if r.Key == 0 || len(promptTokens) == 0 || len(promptTokens) > 4*idLimit(r)+1<<20 {
		return
	}
	e := &entry{source: FromCache}
	if known := s.cache.get(r.Key); known != nil {
		right := slices.Equal(known.tokens, promptTokens)
		s.check(r.Model, known, promptTokens, right)
		if right { // the media and the salt are known as well
			*e = *known
			e.by = nil
			s.cache.put(r.Key, e)
			return
		}
		e.media, e.salt = nil, known.salt
	}
	// Media are part of what blocks depend on, and are not reported.
	if inspect(r.Endpoint, r.Body).media {
		return
	}
	e.tokens = slices.Clone(promptTokens)
	s.cache.put(r.Key, e)
}

// check counts for the way that found known.
func (s *Service) check(name string, known *entry, want []uint32, right bool) {
	if known.by == nil {
		return
	}
	s.count.checked(right)
	problem := ""
	if !right {
		problem = fmt.Sprintf("%d of the last %d prompts or less had other tokens than their engine says: %s",
			maxWrong, checkWindow, differ(known.tokens, want))
	}
	s.model(name).checked(known.by, known.epoch, right, problem)
}

// differ says where two lists of tokens part, for people.
func differ(got, want []uint32) string {
	n := min(len(got), len(want))
	for i := range n {
		if got[i] != want[i] {
			return fmt.Sprintf("token %d is %d, the engine's %d", i, got[i], want[i])
		}
	}
	return fmt.Sprintf("%d tokens, the engine's %d", len(got), len(want))
}
