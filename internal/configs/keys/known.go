package keys

// KnownPaths are the paths that an override may name. IsText is true if the value at the path is a text.
type KnownPaths struct {
	IsText map[string]bool
	Words  []string // sections that may be plain words
}

// SweepKey is the key with the settings of several runs. No run has this key, so it is removed from the tree before the walk.
const SweepKey = "sweep"
