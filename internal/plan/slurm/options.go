package slurm

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// ownOptions are options of sbatch that a script already has, by their names, and their origins.
var ownOptions = []struct {
	names []string
	by    string
}{
	{[]string{"--nodes", "-N"}, "the flag --nodes sets it"},
	{[]string{"--ntasks", "-n", "--ntasks-per-node"}, "the flags --ranks and --nodes set it"},
	{[]string{"--cpus-per-task", "-c"}, "the flag --cores sets it"},
	{[]string{"--gpus-per-node"}, "the flag --gpus sets it"},
	{[]string{"--time", "-t"}, "the flag --time sets it"},
	{[]string{"--partition", "-p"}, "the flag --partition sets it"},
	{[]string{"--account", "-A"}, "the flag --account sets it"},
	{[]string{"--qos", "-q"}, "the flag --qos sets it"},
	{[]string{"--job-name", "-J"}, "it is the name of the configuration"},
	{[]string{"--array", "-a"}, "fluentps sweep --slurm writes arrays"},
	{[]string{"--signal", "--open-mode", "--requeue"}, "the script sets it, and depends on it"},
	{[]string{"--wrap"}, "there is a script"},
}

// CheckOption returns an error if a text cannot follow #SBATCH in a script. One text may have several options, and
// sbatch interprets quotes in it.
func CheckOption(text string) error {
	words, err := optionWords(text)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(text, "-") {
		return errors.New("it is not an option of sbatch; write it as after #SBATCH, as in --constraint=a100")
	}
	for _, w := range words {
		for _, o := range ownOptions {
			if slices.Contains(o.names, optionName(w)) {
				return fmt.Errorf("%s is not for this flag; %s", optionName(w), o.by)
			}
		}
	}
	return nil
}

// AsksForMemory returns whether an option that CheckOption accepts sets the memory of a job.
func AsksForMemory(text string) bool {
	words, _ := optionWords(text)
	return slices.ContainsFunc(words, func(w string) bool {
		return slices.Contains([]string{"--mem", "--mem-per-cpu", "--mem-per-gpu"}, optionName(w))
	})
}

// optionName returns the option at the beginning of a word, without its value; any other word unchanged.
func optionName(word string) string {
	if strings.HasPrefix(word, "--") {
		name, _, _ := strings.Cut(word, "=")
		return name
	}
	if len(word) > 2 && word[0] == '-' {
		return word[:2]
	}
	return word
}

// hasControls returns whether a text is not one line of plain text.
func hasControls(text string) bool {
	return !utf8.ValidString(text) ||
		strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' })
}

// optionWords splits a text like sbatch.
func optionWords(text string) (words []string, err error) {
	if hasControls(text) {
		return nil, errors.New("it holds a line break or another control character, and sbatch would take the rest for " +
			"the script; give each option a flag of its own")
	}
	var quote byte
	word, inside := []byte{}, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && quote != '\'':
			if i++; i == len(text) {
				return nil, errors.New("a backslash ends it; remove it")
			}
			word, inside = append(word, text[i]), true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word = append(word, c)
		case c == '\'' || c == '"':
			quote, inside = c, true
		case c == '#' && strings.HasPrefix(text, "#SBATCH"):
			return nil, errors.New("the script writes #SBATCH itself; leave it out, as in --constraint=a100")
		case c == '#':
			return nil, errors.New("sbatch takes the text after # for a comment; quote it, as in --comment='\"run #3\"'")
		case c == ' ':
			if inside {
				words = append(words, string(word))
			}
			word, inside = word[:0:0], false
		default:
			word, inside = append(word, c), true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote %c is not closed", quote)
	}
	if inside {
		words = append(words, string(word))
	}
	return words, nil
}

var timeForms = regexp.MustCompile(`^(?:([0-9]+)-([0-9]+)(?::([0-9]+)(?::([0-9]+))?)?|([0-9]+)(?::([0-9]+)(?::([0-9]+))?)?)$`)

// TimeForms describes the input of ParseTime.
const TimeForms = "a time with its unit, as in 3h50m, or in the form of Slurm: minutes, minutes:seconds, " +
	"hours:minutes:seconds, days-hours, days-hours:minutes, days-hours:minutes:seconds"

// ParseTime reads a time limit in a form of sbatch or with units.
func ParseTime(text string) (time.Duration, error) {
	m := timeForms.FindStringSubmatch(text)
	if m == nil {
		return time.ParseDuration(text)
	}
	n := make([]time.Duration, len(m))
	for i, digits := range m[1:] {
		if digits == "" {
			continue
		}
		v, err := strconv.ParseUint(digits, 10, 24)
		if err != nil {
			return 0, fmt.Errorf("%s is too large a number", clip(digits))
		}
		n[i+1] = time.Duration(v)
	}
	switch {
	case m[1] != "":
		return n[1]*24*time.Hour + n[2]*time.Hour + n[3]*time.Minute + n[4]*time.Second, nil
	case m[7] != "":
		return n[5]*time.Hour + n[6]*time.Minute + n[7]*time.Second, nil
	default:
		return n[5]*time.Minute + n[6]*time.Second, nil
	}
}
