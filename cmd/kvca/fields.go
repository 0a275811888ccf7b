package main

import (
	"fmt"
	"slices"
	"strings"

	"kvca/state/cbr"
)

// addField makes the setter of a change to what the CBR leaves out. Fields hold
// no =, models may.
func addField(out bool) setter {
	return func(s *settings, v string) error {
		model, field := "", v
		if i := strings.LastIndex(v, "="); i >= 0 {
			model, field = v[:i], v[i+1:]
		}
		if field == "" || strings.HasPrefix(v, "=") {
			return fmt.Errorf("%q: want FIELD or MODEL=FIELD", v)
		}
		fields := s.fieldsOf(model)
		if out {
			fields.Out = append(fields.Out, field)
			return checkFields(cbr.Options{Out: []string{field}})
		}
		fields.In = append(fields.In, field)
		return checkFields(cbr.Options{In: []string{field}})
	}
}

func checkFields(options cbr.Options) error {
	_, err := cbr.Compile(options)
	return err
}

// compileRules makes the rules of each model. What is said of every model holds
// for the named ones too.
func (s *settings) compileRules() (faults []error) {
	s.proxy.Rules = make(map[string]*cbr.Rules, len(s.fields))
	all := s.fields[""]
	for model, own := range s.fields {
		options := *own
		if model != "" && all != nil {
			options.Out = append(append([]string(nil), all.Out...), own.Out...)
			options.In = append(append([]string(nil), all.In...), own.In...)
		}
		rules, err := cbr.Compile(options)
		if err != nil && checkEach(options) {
			faults = append(faults, fmt.Errorf("cbr_in: model %q: %w", model, err))
		}
		s.proxy.Rules[model] = rules
	}
	return faults
}

// checkEach is whether every field is fine by itself, so that a fault lies in
// their combination and has not been reported with the field.
func checkEach(options cbr.Options) bool {
	for _, name := range options.Out {
		if checkFields(cbr.Options{Out: []string{name}}) != nil {
			return false
		}
	}
	for _, name := range options.In {
		if checkFields(cbr.Options{In: []string{name}}) != nil {
			return false
		}
	}
	return true
}

// fieldsOf are the changes to the CBR of one model.
func (s *settings) fieldsOf(model string) *cbr.Options {
	if s.fields[model] == nil {
		s.fields[model] = new(cbr.Options)
	}
	return s.fields[model]
}

// fieldsText is all changes to what the CBR leaves out, the same for the same
// changes in any order.
func (s *settings) fieldsText() string {
	var lines []string
	for model, options := range s.fields {
		for _, field := range options.Out {
			lines = append(lines, fmt.Sprintf("out %q %q", model, field))
		}
		for _, field := range options.In {
			lines = append(lines, fmt.Sprintf("in %q %q", model, field))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
