package scheme

// coins is the source of random numbers of a rule on one server. Each number is a hash of the request that it decides,
// not the next of a sequence. So all shards that hear of one request see one number, in whatever order they hear of
// other requests, and there is no state to save. FluentPS's server tosses one coin for a request with all of a worker's
// keys [C].
type coins uint64

// coins are the coins of the rule on the server, in a run with this seed.
func (e Env) coins() coins { return coins(e.Seed).with(int64(e.Rule)).with(int64(e.Server)) }

// with derives other coins for each x. It is a step of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): each bit of its
// input changes about half of the bits of its output.
func (c coins) with(x int64) coins {
	z := uint64(c) + 0x9e3779b97f4a7c15*(uint64(x)+1)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return coins(z ^ z>>31)
}

// toss is the coin for the worker's request to start iteration iter: uniform in [0, 1).
func (c coins) toss(worker int32, iter int64) float64 {
	return float64(c.with(int64(worker)).with(iter)>>11) / (1 << 53)
}
