package localmodel

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"kvca/proxy/engine/template"
	"kvca/proxy/engine/template/jinja"
	"kvca/proxy/engine/tokenizer"
)

// Model is what a folder of files says of a model.
type Model struct {
	tokens   *tokenizer.Tokenizer
	chat     *template.Template // nil: noChat says why
	withTool *template.Template // for requests with tools, nil: the same
	noChat   error
	noText   error // why text can't be tokenized with special tokens around, if so
}

// maxConfig bounds each file but the tokenizer's, in bytes.
const maxConfig = 8 << 20

// Open reads the files of a model. Without a chat template, or with one that can't be
// used, it is still good for completions.
func Open(dir string) (*Model, error) {
	tokens, err := tokenizer.Load(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		return nil, err
	}
	config, err := readConfig(dir, "tokenizer_config.json")
	if err != nil {
		return nil, err
	}
	m := &Model{tokens: tokens}
	if boolean(config, "add_bos_token") && len(tokens.Special()) == 0 {
		m.noText = errors.New("tokenizer_config.json wants a token before the text that tokenizer.json doesn't add: versions of engines differ")
	}
	if m.noChat = ownRenderer(dir); m.noChat == nil {
		m.noChat = m.readTemplates(dir, config)
	}
	return m, nil
}

// NoChat is why chat requests aren't supported, nil if they are.
func (m *Model) NoChat() error { return m.noChat }

// Vocabulary is one more than the highest token id.
func (m *Model) Vocabulary() int { return m.tokens.Vocabulary() }

// rendersItself are the kinds of models that vLLM has renderers in code for.
var rendersItself = []string{"gpt_oss", "deepseek_v32", "deepseek_v4", "kimi_k3"}

func ownRenderer(dir string) error {
	config, err := readConfig(dir, "config.json")
	if err != nil {
		return err
	}
	if kind, _ := config.Get("model_type"); slices.Contains(rendersItself, text(kind)) {
		return fmt.Errorf("engines don't use the chat template of a %s model", kind)
	}
	return nil
}

func (m *Model) readTemplates(dir string, config *jinja.Dict) error {
	special := specialTokens(config)
	source, err := readFile(filepath.Join(dir, "chat_template.jinja"))
	if err == nil {
		m.chat, err = template.Compile(string(source), special)
		return err
	}
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	v, _ := config.Get("chat_template")
	named, ok := v.(*jinja.List)
	if !ok {
		if text(v) == "" {
			return errors.New("no chat template")
		}
		m.chat, err = template.Compile(text(v), special)
		return err
	}
	return m.readNamed(named, special)
}

// readNamed reads templates of which there are several: that for tools, and the
// default.
func (m *Model) readNamed(named *jinja.List, special map[string]string) error {
	for _, v := range named.Items {
		d, ok := v.(*jinja.Dict)
		if !ok {
			return errors.New("chat_template: want objects in the list")
		}
		name, _ := d.Get("name")
		source, _ := d.Get("template")
		into := map[string]**template.Template{"default": &m.chat, "tool_use": &m.withTool}[text(name)]
		if into == nil {
			continue
		}
		t, err := template.Compile(text(source), special)
		if err != nil {
			return err
		}
		*into = t
	}
	if m.chat == nil {
		return errors.New("chat_template: none of the list is named default")
	}
	return nil
}

// specialTokens are those that templates see by name.
func specialTokens(config *jinja.Dict) map[string]string {
	tokens := map[string]string{}
	for _, name := range []string{
		"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token",
	} {
		v, _ := config.Get(name)
		if d, ok := v.(*jinja.Dict); ok {
			v, _ = d.Get("content")
		}
		if s := text(v); s != "" {
			tokens[name] = s
		}
	}
	return tokens
}

// readConfig reads an object; a file that isn't there is an empty one.
func readConfig(dir, name string) (*jinja.Dict, error) {
	data, err := readFile(filepath.Join(dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return &jinja.Dict{}, nil
	}
	if err != nil {
		return nil, err
	}
	v, err := jinja.ReadJSON(data)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	d, ok := v.(*jinja.Dict)
	if !ok {
		return nil, fmt.Errorf("read %s: want an object", name)
	}
	return d, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err == nil && len(data) > maxConfig {
		err = fmt.Errorf("read %s: larger than %d MiB", path, maxConfig>>20)
	}
	return data, err
}

func text(v jinja.Value) string { s, _ := v.(string); return s }

func boolean(d *jinja.Dict, name string) bool { v, _ := d.Get(name); return v == jinja.Value(true) }
