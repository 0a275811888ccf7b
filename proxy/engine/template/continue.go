package template

import (
	"errors"
	"fmt"
	"strings"

	"kvca/proxy/engine/template/jinja"
)

// continueTag marks the end of the final message: what the template writes after it
// is cut off. It is the engines' own, so that a message which has it renders alike.
const continueTag = "CONTINUE_FINAL_MESSAGE_TAG "

// continued renders, up to the end of the final message if that is to be continued.
func (t *Template) continued(messages *jinja.List, vars map[string]jinja.Value) (string, error) {
	vars["messages"] = messages
	how := vars["continue_final_message"]
	delete(vars, "continue_final_message") // engines don't pass it on
	name, named := how.(string)
	if how != jinja.Value(true) && (!named || name == "") {
		return t.compiled.Render(vars, t.now)
	}
	if !named {
		name = "content"
	}
	final, err := t.mark(messages, name)
	if err != nil {
		return "", err
	}
	out, err := t.compiled.Render(vars, t.now)
	if err != nil {
		return "", err
	}
	tag := strings.TrimSpace(continueTag)
	at := strings.LastIndex(out, tag)
	if at < 0 || !strings.Contains(out, strings.TrimSpace(final)) {
		return "", errors.New("continue_final_message: the template doesn't render the final message as it is")
	}
	if strings.HasPrefix(out[at:], continueTag) {
		return out[:at], nil
	}
	return strings.TrimSpace("x" + out[:at])[1:], nil // space before the tag was trimmed
}

// mark puts the tag behind the final message, and gives that as it was.
func (t *Template) mark(messages *jinja.List, name string) (string, error) {
	if len(messages.Items) == 0 {
		return "", errors.New("continue_final_message: no message")
	}
	if !strings.Contains(t.source, name) {
		return "", fmt.Errorf("continue_final_message: the template doesn't use %s", name)
	}
	last := messages.Items[len(messages.Items)-1].(*jinja.Dict)
	switch v, _ := last.Get(name); v := v.(type) {
	case string:
		last.Set(name, v+continueTag)
		return v, nil
	case *jinja.List:
		for i := len(v.Items) - 1; i >= 0; i-- {
			if part, ok := v.Items[i].(*jinja.Dict); ok {
				if text, ok := member[string](part, "text"); ok {
					part.Set("text", text+continueTag)
					return text, nil
				}
			}
		}
	}
	return "", fmt.Errorf("continue_final_message: the final message has no %s", name)
}
