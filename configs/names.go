package configs

import "fluentps/ps/scheme"

// Names that have no table of their own: the key is the only place where they are chosen.
var (
	hierarchies = []string{"none"}
	evaluations = []string{"after", "online"}
	devices     = []string{"cpu", "auto"}
	policies    = []string{"fixed"}
	folds       = []string{string(scheme.FoldRank), string(scheme.FoldArrival)}
	pushes      = []string{"gradient"}
	updates     = []string{"optimizer"}
	sinks       = []string{"jsonl", "csv"}
	noises      = []string{"none", "normal", "exponential", "two_state"}
)
