package keys

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/settings"
)

// originCol is the column of the origins; a longer line pushes its own to the right.
const originCol = 48

// Resolved writes every value as YAML that loads to an equal Config. With origins each line ends in a comment
// that says where its value comes from; nil leaves the comments out.
func Resolved(w io.Writer, c *settings.Config, o *diag.Origins) error {
	p := &printer{origins: o}
	p.table(Bind("", TopKeys, c), "", "")
	_, err := w.Write(p.out.Bytes())
	return err
}

// Hash returns the SHA-256 of the resolved form without comments, in hexadecimal. It does not depend on the origins
// of values. Ranks compare it to verify that all of them have the same configuration.
func Hash(c *settings.Config) string {
	p := &printer{}
	p.table(Bind("", TopKeys, c), "", "")
	sum := sha256.Sum256(p.out.Bytes())
	return hex.EncodeToString(sum[:])
}

// Values returns every value by its path, such as sync[0].scheme, in its resolved form.
func Values(c *settings.Config) map[string]string {
	p := &printer{values: map[string]string{}}
	p.table(Bind("", TopKeys, c), "", "")
	return p.values
}

// free are the prefixes of keys that may change when a run resumes. They determine when the run ends, what it evaluates, keeps and prints,
// and its hardware, and change no parameter until its end. model.init acts only at the start.
var free = []string{"model.init", "train.stop.", "evaluate.", "checkpoint.", "stall.", "metrics.", "simulate.",
	"cluster.memory_max", "cluster.bind", "cluster.link", "cluster.shared_memory", "device."}

// former are defaults of earlier versions, which wrote checkpoints without the key that stands beside each. They
// count as today's defaults: the parameters of bsp are the same to the bit.
var former = map[string]struct{ value, before string }{"send.order": {"fifo", "shards.parts"}}

// Changed lists the keys, in order, whose values differ from those of a checkpoint, without the free ones. A key that the checkpoint does
// not have, for example because an earlier version wrote it, counts as its default.
func Changed(old map[string]string, c *settings.Config) []string {
	p := &printer{values: map[string]string{}, defaults: map[string]bool{}}
	p.table(Bind("", TopKeys, c), "", "")
	var keys []string
	for path, v := range p.values {
		was, there := old[path]
		if f, changed := former[path]; changed && was == f.value && p.defaults[path] {
			if _, since := old[f.before]; !since {
				continue
			}
		}
		if there && was != v || !there && !p.defaults[path] {
			keys = append(keys, path)
		}
	}
	for path := range old {
		if _, there := p.values[path]; !there {
			keys = append(keys, path)
		}
	}
	keys = slices.DeleteFunc(keys, func(path string) bool {
		return slices.ContainsFunc(free, func(begin string) bool { return strings.HasPrefix(path, begin) })
	})
	slices.Sort(keys)
	return keys
}

type printer struct {
	out     bytes.Buffer
	origins *diag.Origins
	values  map[string]string // what was printed, by path; nil: not kept
	// defaults are the paths whose values are their keys' defaults; nil: not kept.
	defaults map[string]bool
}

func (p *printer) line(text, path string) {
	p.out.WriteString(text)
	if p.origins != nil && path != "" {
		pad := max(1, originCol-utf8.RuneCountInString(text))
		origin := diag.Visible(p.origins.Of(path)) // a line break in a file's name would end the comment
		fmt.Fprintf(&p.out, "%*s# %s", pad, "", origin)
	}
	p.out.WriteByte('\n')
}

// table prints the leaves that have a value. first opens the first line, rest the others.
func (p *printer) table(t *Table, first, rest string) {
	var open []string // the sections that are open
	lead := first
	for _, l := range t.Leaves {
		if !t.isShown(l) {
			continue
		}
		parts := strings.Split(t.shown(l), ".")
		sections, name := parts[:len(parts)-1], parts[len(parts)-1]
		same := 0
		for same < len(open) && same < len(sections) && open[same] == sections[same] {
			same++
		}
		for i := same; i < len(sections); i++ {
			p.line(lead+strings.Repeat("  ", i)+sections[i]+":", "")
			lead = rest
		}
		open = sections
		p.leaf(l, lead+strings.Repeat("  ", len(sections))+name+":")
		lead = rest
	}
}

// isShown says whether a leaf is printed: it has a value, with the values of the other keys.
func (t *Table) isShown(l *Leaf) bool {
	return t.Met(l) && (l.Def != "" || l.Required || !isZero(l.Ptr))
}

// shown is the path at which a leaf is printed: a word whose section has other keys now is the name in it.
func (t *Table) shown(l *Leaf) string {
	if t.HasWord(l.Spec.Path) {
		for _, in := range t.Leaves {
			if strings.HasPrefix(in.Spec.Path, l.Spec.Path+".") && t.isShown(in) {
				return diag.Join(l.Spec.Path, WordName)
			}
		}
	}
	return l.Spec.Path
}

func (p *printer) leaf(l *Leaf, start string) {
	switch v := l.Ptr.(type) {
	case *[]settings.Rule:
		p.line(start, "")
		for i := range *v {
			r := &(*v)[i]
			path, phases := fmt.Sprintf("%s[%d]", l.Path, i), r.Phases()
			t := BindPhased(path, r, &phases)
			if len(phases) == 1 {
				t = Bind(path, RuleKeys, r)
				BindScheme(t, &r.Params, r.Scheme)
			}
			p.table(t, "  - ", "    ")
		}
	case *[]settings.Phase: // of a rule
		p.line(start, "")
		for i := range *v {
			ph := &(*v)[i]
			t := Bind(fmt.Sprintf("%s[%d]", l.Path, i), PhaseKeys, ph)
			BindScheme(t, &ph.Params, ph.Scheme)
			p.table(t, "      - ", "        ")
		}
	case *[]settings.Fault:
		if len(*v) == 0 {
			p.value(start, "[]", l)
			return
		}
		p.line(start, "")
		for i := range *v {
			p.table(bindFault(fmt.Sprintf("%s[%d]", l.Path, i), &(*v)[i]), "  - ", "    ")
		}
	default:
		p.value(start, Format(l.Ptr), l)
	}
}

func (p *printer) value(start, text string, l *Leaf) {
	if p.values != nil {
		p.values[l.Path] = text
	}
	if p.defaults != nil {
		p.defaults[l.Path] = l.IsDefault()
	}
	p.line(start+" "+text, l.Path)
}
