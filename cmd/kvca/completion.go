package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

// Scripts by the shell they are for. Each asks the program itself what may come
// next, so they never go stale.
var completionScripts = map[string]string{
	"bash": `_kvca() {
  local cur="${COMP_WORDS[COMP_CWORD]}"
  local -a before=("${COMP_WORDS[@]:0:COMP_CWORD}")
  [[ "$cur" == -* ]] && before+=("$cur")
  local IFS=$'\n'
  COMPREPLY=($(compgen -W "$("${before[@]}" --generate-bash-completion 2>/dev/null)" -- "$cur"))
}
complete -o bashdefault -o default -F _kvca kvca
`,
	"zsh": `#compdef kvca
_kvca() {
  local -a before offers
  before=("${(@)words[1,CURRENT-1]}")
  [[ "$words[CURRENT]" == -* ]] && before+=("$words[CURRENT]")
  offers=("${(@f)$("${before[@]}" --generate-bash-completion 2>/dev/null)}")
  if [[ -n "$offers[1]" ]]; then _describe kvca offers; else _files; fi
}
compdef _kvca kvca
`,
}

func completionCommand() *cli.Command {
	return &cli.Command{
		Name:        "completion",
		Usage:       "print a script that completes kvca's commands and flags",
		ArgsUsage:   "bash|zsh|fish",
		Description: "For this shell only: source <(kvca completion bash)",
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return errors.New("completion: want one argument, the shell: bash, zsh or fish")
			}
			script, err := completionFor(c.App, c.Args().First())
			if err == nil {
				_, err = fmt.Fprint(c.App.Writer, script)
			}
			return err
		},
	}
}

func completionFor(app *cli.App, shell string) (string, error) {
	if shell == "fish" {
		return app.ToFishCompletion()
	}
	script := completionScripts[strings.ToLower(shell)]
	if script == "" {
		return "", fmt.Errorf("completion: shell %q: want bash, zsh or fish", shell)
	}
	return script, nil
}
