package cli

import (
	"io"

	ucli "github.com/urfave/cli/v2"
)

const bashCompletion = `_burrow() {
    local words=("${COMP_WORDS[@]:0:COMP_CWORD}")
    local current="${COMP_WORDS[COMP_CWORD]}"
    [[ "$current" == -* ]] && words+=("$current")
    COMPREPLY=($(compgen -W "$("${words[@]}" --generate-bash-completion 2>/dev/null)" -- "$current"))
}
complete -o bashdefault -o default -F _burrow burrow
`

const zshCompletion = `#compdef burrow
_burrow() {
    local -a found
    local current="${words[CURRENT]}"
    if [[ "$current" == -* ]]; then
        found=("${(@f)$(${words[@]:0:$CURRENT} --generate-bash-completion 2>/dev/null)}")
    else
        found=("${(@f)$(${words[@]:0:$CURRENT-1} --generate-bash-completion 2>/dev/null)}")
    fi
    [[ -n "${found[1]}" ]] && compadd -a found || _files
}
compdef _burrow burrow
`

// completionCommand prints what a shell needs to complete commands and flags.
func completionCommand() *ucli.Command {
	script := func(shell, text, use string) *ucli.Command {
		return &ucli.Command{
			Name: shell, Usage: "print the completion for " + shell, Description: use,
			Action: func(c *ucli.Context) error {
				_, err := io.WriteString(c.App.Writer, text)
				return err
			},
		}
	}
	return &ucli.Command{
		Name: "completion", Category: categoryMachine, Usage: "print the completion for a shell",
		Subcommands: []*ucli.Command{
			script("bash", bashCompletion, "source <(burrow completion bash)"),
			script("zsh", zshCompletion, "source <(burrow completion zsh)"),
		},
	}
}
