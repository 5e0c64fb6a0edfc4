package configs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"gopkg.in/yaml.v3"

	"fluentps/internal/disk/durable"
)

// Options override the values of a file. A later one wins: defaults, YAML, Env, Set.
type Options struct {
	Set []string // a.b[2].c=v, later ones win
	Env []string // NAME=value as of os.Environ; names without the prefix FLUENTPS_ are ignored. nil: none
}

// Origins records where each value comes from.
type Origins struct {
	of map[string]string
	at map[string]Diagnostic // place of each given value, by path: file, line, column and source line
}

func newOrigins() *Origins {
	return &Origins{of: map[string]string{}, at: map[string]Diagnostic{}}
}

// place returns the place of a value. For a value that was not given, it returns the place of its list, or the head of the file.
func (o *Origins) place(path string) Diagnostic {
	for o != nil && path != "" {
		if d, given := o.at[path]; given {
			return d
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	if o == nil {
		return Diagnostic{}
	}
	return o.at[""] // the head of the file
}

// Of returns the origin of the value at a path such as sync[0].match: "default", "file:line", "env FLUENTPS_X" or "--set".
func (o *Origins) Of(path string) string {
	if o != nil && o.of[path] != "" {
		return o.of[path]
	}
	return "default"
}

// Refuse makes a diagnostic from an error about the value at a path. The text after the first semicolon is the hint.
func (o *Origins) Refuse(path string, err error) Diagnostic {
	d := o.place(path)
	d.Path = path
	d.Msg, d.Hint, _ = strings.Cut(err.Error(), "; ")
	return d.printable()
}

// Load reads a file and checks it. See Parse.
func Load(file string, o Options) (*Config, *Origins, Diagnostics) {
	src, err := readFile(file)
	if err != nil {
		return nil, newOrigins(), Diagnostics{{File: file, Col: 1, Msg: "cannot be read: " + err.Error(), Hint: fileHint(file)}}
	}
	return Parse(file, src, o)
}

// readFile reads at most one byte more than a file may have, so that a device or a data set given by mistake
// does not fill the memory.
func readFile(file string) ([]byte, error) {
	f, err := durable.OpenStream(file)
	if info, unknown := os.Stat(file); err != nil && unknown == nil && info.IsDir() {
		return nil, errors.New("it is a folder")
	}
	if err != nil {
		var p *fs.PathError
		if errors.As(err, &p) { // the diagnostic names the file
			err = p.Err
		}
		return nil, err
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, bytesMax+1))
	if err == nil && len(src) > bytesMax {
		err = fmt.Errorf("more than %d bytes; name the configuration, not the data", bytesMax)
	}
	return src, err
}

// Parse reads a configuration from memory. name stands for the file in diagnostics and origins. Parse reports all problems at once, by
// position. The Config is nil if one of them is fatal. Otherwise defaults are filled and every value is within its limits.
func Parse(name string, src []byte, o Options) (*Config, *Origins, Diagnostics) {
	return parsePoint(name, src, o, nil)
}

// parsePoint is Parse with the settings of one run of the file's sweep, which override all others.
func parsePoint(name string, src []byte, o Options, point []setting) (*Config, *Origins, Diagnostics) {
	src = bytes.TrimPrefix(src, []byte("\xef\xbb\xbf"))
	file := newText(name, src)
	origins := newOrigins()
	origins.at[""] = file.at(1, 1, "", "")
	root, refused := parse(file, src)
	if refused != nil {
		return nil, origins, Diagnostics{refused.printable()}
	}
	w := &walker{file: file, from: map[*yaml.Node]*text{}, origins: origins, cfg: &Config{}, tree: root}
	w.takeSweep(root) // only checked here; Sweep reads it, and the Config does not contain it
	w.overrideAll(root, o)
	w.applyPoint(root, point)
	w.root(root)
	if !w.diags.Failed() {
		for _, d := range idle(w.cfg, origins, factsOf(w.cfg)) {
			w.add(d)
		}
	}
	ds := w.diags.sorted()
	if ds.Failed() {
		return nil, origins, ds
	}
	return w.cfg, origins, ds
}
