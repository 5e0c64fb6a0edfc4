package verbs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/urfave/cli/v2"

	"fluentps/internal/configs"
)

// completing is the word that the completion functions of the shells append. It must be the last word.
const completing = "--generate-bash-completion"

// completions are the completion functions, by shell, for a program of the name %[1]s. Each calls the program with all words before
// the one that is being typed. That one comes too if it is the beginning of a flag, a bare -- as -, since behind -- stand words
// of other programs.
var completions = map[string]string{
	"bash": `_%[2]s() {
	local asked=("${COMP_WORDS[@]:0:COMP_CWORD}") word=${COMP_WORDS[COMP_CWORD]}
	case $word in --) asked+=(-) ;; -*) asked+=("$word") ;; esac
	COMPREPLY=($(compgen -W "$("${asked[@]}" --generate-bash-completion 2>/dev/null)" -- "$word"))
	case ${COMPREPLY[0]-} in *=) compopt -o nospace 2>/dev/null ;; esac
}
complete -o default -F _%[2]s %[1]s
`,
	"zsh": `_%[2]s() {
	local -a asked found
	asked=("${(@)words[1,CURRENT-1]}")
	case $words[CURRENT] in --) asked+=(-) ;; -*) asked+=("$words[CURRENT]") ;; esac
	found=("${(@f)$("${(@)asked}" --generate-bash-completion 2>/dev/null)}")
	[[ -n ${found[1]-} ]] && compadd -S '' -- "${(@M)found:#*=}"
	[[ -n ${found[1]-} ]] && compadd -- "${(@)found:#*=}"
	_files
}
compdef _%[2]s %[1]s
`,
	"fish": `function _%[2]s
	set -l asked (commandline -opc)
	set -l word (commandline -ct)
	switch $word
		case --
			set -a asked -
		case '-*'
			set -a asked $word
	end
	$asked --generate-bash-completion 2>/dev/null
end
complete -c %[1]s -a '(_%[2]s)'
`,
}

// completionPlaces say where to install the function of a shell.
var completionPlaces = map[string]string{
	"bash": `eval "$(fluentps completion bash)" in ~/.bashrc`,
	"zsh":  `eval "$(fluentps completion zsh)" in ~/.zshrc, after compinit`,
	"fish": `fluentps completion fish >~/.config/fish/completions/fluentps.fish`,
}

// programName is the name that this program was called by, and the same as part of a shell's identifier.
func programName() (name, identifier string) {
	name = filepath.Base(os.Args[0])
	return name, noIdentifier.ReplaceAllString(name, "_")
}

var noIdentifier = regexp.MustCompile(`[^A-Za-z0-9_]`)

func shells() []string { return []string{"bash", "zsh", "fish"} }

func completionCommand() *cli.Command {
	places := ""
	for _, name := range shells() {
		places += fmt.Sprintf("%-5s %s\n", name, completionPlaces[name])
	}
	return &cli.Command{
		Name:        "completion",
		Usage:       "print the completion function of a shell: bash, zsh or fish",
		ArgsUsage:   "SHELL",
		Description: strings.TrimSpace(places),
		Action: func(c *cli.Context) error {
			name, err := one(c, "SHELL")
			if err != nil {
				return err
			}
			text, ok := completions[name]
			if !ok {
				return usagef("completion: %s", unknown("shell", name, shells()))
			}
			program, identifier := programName()
			_, err = fmt.Fprintf(c.App.Writer, text, program, identifier)
			return err
		},
		BashComplete: func(c *cli.Context) { fmt.Fprintln(c.App.Writer, strings.Join(shells(), "\n")) },
	}
}

// completeSet lists the completions after --set: each key with =, and KEY=VALUE for keys that have a few values. For bash = ends
// a word, so after an = it needs the values alone. It returns nil if the words to complete do not end in --set.
func completeSet(args []string) (words []string) {
	n := len(args)
	if n < 3 || args[n-1] != completing {
		return nil
	}
	isSet := func(at int) bool { return at > 0 && (args[at] == "--set" || args[at] == "-set") }
	if args[n-2] == "=" && isSet(n-4) {
		for _, k := range configs.Keys() {
			if plainPath(k.Path) == plainPath(args[n-3]) {
				words = append(words, k.Values...)
			}
		}
		return words
	}
	if !isSet(n - 2) {
		return nil
	}
	for _, k := range configs.Keys() {
		words = append(words, strings.ReplaceAll(k.Path, "[]", "[0]")+"=")
		for _, v := range k.Values {
			words = append(words, strings.ReplaceAll(k.Path, "[]", "[0]")+"="+v)
		}
	}
	return words
}
