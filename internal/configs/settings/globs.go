package settings

import (
	"strings"

	"fluentps/internal/core/shard"
)

// Covers reports whether the first glob fits every name that the second fits. It does if it fits the text of the second, provided that no
// question mark of the first matches a star of the second. Covers returns false for all such pairs.
func Covers(first, second string) bool {
	return shard.Match(first, second) && !(strings.Contains(first, "?") && strings.Contains(second, "*"))
}

// MatchesAll reports whether a glob fits every name. The last rule must, even if the rules before it take all parameters.
func MatchesAll(glob string) bool { return glob != "" && strings.Trim(glob, "*") == "" }
