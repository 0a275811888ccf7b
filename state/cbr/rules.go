package cbr

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// builtinOut names the top-level members that cannot change the rendered prompt.
// Everything else is in, known or not: a field wrongly left out sends a request
// to a cache that does not hold its prompt, one wrongly taken in only splits a
// prefix. The names come from the request models of vLLM, SGLang, TGI, llama.cpp
// and the OpenAI client; a trailing * stands for any ending.
var builtinOut = namesOf([]string{
	// Sampling and output.
	"temperature", "top_p", "top_k", "min_p", "typical_p", "n", "best_of", "use_beam_search", "early_stopping",
	"max_tokens", "max_completion_tokens", "max_output_tokens", "min_tokens", "max_tool_calls",
	"stop", "stop_sequences", "stop_token_ids", "stop_regex", "no_stop_trim", "include_stop_str_in_output",
	"ignore_eos", "bad_words", "allowed_token_ids", "seed",
	"presence_penalty", "frequency_penalty", "repetition_penalty", "length_penalty", "repetition_detection",
	"logit_bias", "logprobs", "top_logprobs", "prompt_logprobs", "logprob_token_ids", "echo",
	"skip_special_tokens", "spaces_between_special_tokens",
	"thinking_token_budget", "include_reasoning", "separate_reasoning", "stream_reasoning",
	"structured_outputs", "guided_*", "structural_tag", "regex", "ebnf", "grammar",
	"custom_logit_processor", "logits_processors", "prediction",
	// Transport and accounting.
	"stream", "stream_options", "stream_interval", "include", "background", "store", "metadata", "user",
	"safety_identifier", "service_tier", "priority", "request_id", "rid", "session_id",
	"prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "moderation",
	"kv_transfer_params", "ec_transfer_params", "bootstrap_*",
	"routed_dp_rank", "data_parallel_rank", "disagg_prefill_dp_rank",
	"vllm_xargs", "custom_params", "custom_labels", "return_*",
})

// Engines' own endpoints have names of their own for sampling and accounting. They
// are out there only: elsewhere nobody knows what they mean.
var (
	ollamaOut   = namesOf([]string{"options", "keep_alive", "format"})
	generateOut = namesOf([]string{"parameters", "sampling_params"})
	completeOut = namesOf([]string{
		"n_predict", "n_probs", "n_keep", "n_discard", "n_indent", "n_cmpl", "id_slot", "cache_prompt", "samplers", "json_schema",
		"dynatemp_*", "xtc_*", "dry_*", "mirostat*", "repeat_last_n", "repeat_penalty", "top_n_sigma", "min_keep",
		"t_max_*", "timings_per_token", "post_sampling_probs", "response_fields",
	})
)

// alwaysIn are the members that no configuration may leave out: without them all
// requests would look the same.
var alwaysIn = []string{"model", "messages", "input", "prompt"}

// Options changes, for one model, what is left out of the CBR. All nodes of a
// cluster must have the same, or they do not share prefixes.
type Options struct {
	// Out are further top-level members to leave out; a trailing * stands for any
	// ending. A member left out that the engine does render makes requests with
	// different prompts look alike: they are then sent to caches that don't help.
	Out []string
	// In are members of the built-in list to take in, by the same notation. Each
	// distinct value of such a member starts a chain of its own.
	In []string
}

// Rules are Options made ready for use. They are immutable, so any number of
// encoders may share them. A nil *Rules is the built-in list.
type Rules struct{ out, in names }

// Compile checks Options and makes Rules of them. The error names every fault.
func Compile(options Options) (*Rules, error) {
	var faults []error
	for _, name := range options.Out {
		faults = append(faults, checkName(name), checkOut(name))
	}
	for _, name := range options.In {
		faults = append(faults, checkName(name), checkIn(name, options.Out))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return &Rules{out: namesOf(options.Out), in: namesOf(options.In)}, nil
}

func checkName(name string) error {
	if name == "" {
		return errors.New(`field name "": want the name of a top-level member of a request`)
	}
	if star := strings.IndexByte(name, '*'); star >= 0 && star != len(name)-1 {
		return fmt.Errorf("field name %q: a * may stand at the end only", name)
	}
	return nil
}

func checkOut(name string) error {
	set := namesOf([]string{name})
	for _, needed := range alwaysIn {
		if set.has([]byte(needed)) {
			return fmt.Errorf("leave out %q: %s has to stay in, it tells prompts apart", name, needed)
		}
	}
	return nil
}

func checkIn(name string, out []string) error {
	if slices.Contains(out, name) {
		return fmt.Errorf("take in %q: it is to be left out too; keep one of the two", name)
	}
	if !builtinOut.covers(name) {
		return fmt.Errorf("take in %q: it is not left out, so it is in already", name)
	}
	return nil
}

// leavesOut reports whether the member of that name, which is no exception of the
// moment, stays out of the CBR.
func (r *Rules) leavesOut(name []byte) bool {
	if r != nil && r.out.has(name) {
		return true
	}
	return builtinOut.has(name) && (r == nil || !r.in.has(name))
}

// insists reports whether an operator has asked for the member to be left out,
// which overrides the exceptions to the built-in list.
func (r *Rules) insists(name []byte) bool { return r != nil && r.out.has(name) }

// names is a set of member names and of prefixes of them.
type names struct {
	exact    map[string]struct{}
	prefixes []string
}

func namesOf(list []string) names {
	set := names{exact: make(map[string]struct{}, len(list))}
	for _, name := range list {
		if prefix, ok := strings.CutSuffix(name, "*"); ok {
			set.prefixes = append(set.prefixes, prefix)
		} else {
			set.exact[name] = struct{}{}
		}
	}
	return set
}

func (set *names) has(name []byte) bool {
	if _, ok := set.exact[string(name)]; ok {
		return true
	}
	for _, prefix := range set.prefixes {
		if len(name) >= len(prefix) && string(name[:len(prefix)]) == prefix {
			return true
		}
	}
	return false
}

// covers reports whether a name, or at least one name that a pattern stands for,
// may be in the set.
func (set *names) covers(name string) bool {
	stem, pattern := strings.CutSuffix(name, "*")
	if !pattern {
		return set.has([]byte(name))
	}
	for exact := range set.exact {
		if strings.HasPrefix(exact, stem) {
			return true
		}
	}
	return slices.ContainsFunc(set.prefixes, func(prefix string) bool {
		return strings.HasPrefix(prefix, stem) || strings.HasPrefix(stem, prefix)
	})
}
