package scheme

// coins is where the random numbers of a rule on one server come from. Each is a hash of the request that it decides, and not
// the next of a sequence: so all shards that hear of one request see one number, in whatever order they hear of others, and
// nothing has to be remembered. FluentPS's server throws one coin for a request with all of a worker's keys [C].
type coins uint64

// coins are those of the rule on the server, in a run with this seed.
func (e Env) coins() coins { return coins(e.Seed).and(int64(e.Rule)).and(int64(e.Server)) }

// and makes other coins for each x. It is a step of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), whose output function
// turns every bit of its input into changes of about half of all bits.
func (c coins) and(x int64) coins {
	z := uint64(c) + 0x9e3779b97f4a7c15*(uint64(x)+1)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return coins(z ^ z>>31)
}

// thrown is the coin for the worker's request to start iteration iter: uniform in [0, 1).
func (c coins) thrown(worker int32, iter int64) float64 {
	return float64(c.and(int64(worker)).and(iter)>>11) / (1 << 53)
}
