package verbs

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"strings"
)

// Set by the linker (-X fluentps/verbs.version=...); a build without it asks Go's own stamp.
var version, commit, dirty string

// buildInfo is what this binary knows of itself.
type buildInfo struct {
	version string // of the release, or the nearest one
	commit  string // 12 digits; "" if unknown
	dirty   bool   // built from a tree with changes beyond the commit
	tags    string // build tags, by blanks
}

func readBuild() buildInfo {
	b := buildInfo{version: version, commit: commit, dirty: dirty == "true"}
	stamp, ok := debug.ReadBuildInfo()
	if !ok {
		b.version = cmp.Or(b.version, "unversioned")
		return b
	}
	set := map[string]string{}
	for _, s := range stamp.Settings {
		set[s.Key] = s.Value
	}
	b.tags = strings.ReplaceAll(set["-tags"], ",", " ")
	b.version = cmp.Or(b.version, stamp.Main.Version, "unversioned")
	for _, m := range stamp.Deps {
		if m.Path == "fluentps" { // the program is another module's, with schemes of its own
			b.version = fmt.Sprintf("%s of %s %s", m.Version, stamp.Main.Path, b.version)
		}
	}
	if b.commit == "" && set["vcs.revision"] != "" {
		b.commit = set["vcs.revision"][:min(12, len(set["vcs.revision"]))]
		b.dirty = set["vcs.modified"] == "true"
	}
	return b
}

// buildText is the build in one line. Ranks compare it: all must run the same.
func buildText() string {
	b := readBuild()
	text := b.version
	if b.commit != "" {
		text += " commit " + b.commit
	}
	if b.dirty {
		text += " with uncommitted changes"
	}
	return text
}
