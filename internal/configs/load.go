// Package configs loads the YAML of an experiment: strictly, and with every problem reported at once.
//
// The order of precedence is default < YAML < FLUENTPS_* environment < --set < a verb's own flag.
//
// Load and Parse read a file along the table of keys (package keys) into the settings, and tell problems through package diag. What is
// checked across keys (package rules) follows, and then what would do nothing in the run (package idle).
package configs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/idle"
	"fluentps/internal/configs/reading"
	"fluentps/internal/configs/settings"
	"fluentps/internal/disk/durable"
)

// Options override the values of a file. A later one wins: defaults, YAML, Env, Set.
type Options struct {
	Set []string // a.b[2].c=v, later ones win
	Env []string // NAME=value as of os.Environ; names without the prefix FLUENTPS_ are ignored. nil: none
}

// Load reads a file and checks it. See Parse.
func Load(file string, o Options) (*settings.Config, *diag.Origins, diag.Diagnostics) {
	src, err := readFile(file)
	if err != nil {
		return nil, diag.NewOrigins(), diag.Diagnostics{{File: file, Col: 1, Msg: "cannot be read: " + err.Error(), Hint: fileHint(file)}}
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
	src, err := io.ReadAll(io.LimitReader(f, diag.BytesMax+1))
	if err == nil && len(src) > diag.BytesMax {
		err = fmt.Errorf("more than %d bytes; name the configuration, not the data", diag.BytesMax)
	}
	return src, err
}

// Parse reads a configuration from memory. name stands for the file in diagnostics and origins. Parse reports all problems at once, by
// position. The Config is nil if one of them is fatal. Otherwise defaults are filled and every value is within its limits.
func Parse(name string, src []byte, o Options) (*settings.Config, *diag.Origins, diag.Diagnostics) {
	return parsePoint(name, src, o, nil)
}

// parsePoint is Parse with the settings of one run of the file's sweep, which override all others.
func parsePoint(name string, src []byte, o Options, point []setting) (*settings.Config, *diag.Origins, diag.Diagnostics) {
	src = bytes.TrimPrefix(src, []byte("\xef\xbb\xbf"))
	file := diag.NewText(name, src)
	origins := diag.NewOrigins()
	origins.Locate("", file.At(1, 1, "", ""))
	root, refused := diag.Parse(file, src)
	if refused != nil {
		return nil, origins, diag.Diagnostics{refused.Printable()}
	}
	w := &walker{Reading: reading.New(file, root, origins)}
	w.takeSweep(root) // only checked here; Sweep reads it, and the Config does not contain it
	w.overrideAll(root, o)
	w.applyPoint(root, point)
	w.root(root)
	if !w.Diags.Failed() {
		for _, d := range idle.Warnings(w.Config, origins, settings.FactsOf(w.Config)) {
			w.Add(d)
		}
	}
	ds := w.Diags.Sorted()
	if ds.Failed() {
		return nil, origins, ds
	}
	return w.Config, origins, ds
}
