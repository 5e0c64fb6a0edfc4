package verbs

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"strings"
)

// The linker sets these (-X fluentps/internal/verbs.version=...). Without them readBuild uses Go's own build stamp.
var version, commit, dirty string

// buildInfo describes the build of this binary.
type buildInfo struct {
	version string // the release, or the nearest one before the commit
	commit  string // 12 digits; "" if unknown
	dirty   bool   // the tree had uncommitted changes
	tags    string // build tags, separated by blanks
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
		if m.Path == "fluentps" { // another module, with schemes of its own, built the program
			b.version = fmt.Sprintf("%s of %s %s", m.Version, stamp.Main.Path, b.version)
		}
	}
	if b.commit == "" && set["vcs.revision"] != "" {
		b.commit = set["vcs.revision"][:min(12, len(set["vcs.revision"]))]
		b.dirty = set["vcs.modified"] == "true"
	}
	return b
}

// buildText is the build in one line. The ranks compare it, because all must run the same build.
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
