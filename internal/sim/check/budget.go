package check

// budget checks that the run ended within one iteration per worker of its budget, or within one exchange where workers take steps of their
// own, and that all samples that the lead shard folded are committed.
func (c *checker) budget() {
	lead, stop := &c.shards[0], c.s.Config().Train.Stop
	most := int64(c.s.Workers()) * int64(c.s.Config().BatchMax(c.s.Workers()))
	if c.local != nil {
		most = c.local.most(0)
	}
	if samples := stop.SampleBudget(c.s.Rows()); samples > 0 && most > 0 && lead.samples >= samples+most {
		c.fail("budgets: %d samples were folded of a budget of %d, but an iteration of all workers has at most %d", lead.samples, samples, most)
	}
	if stop.Updates > 0 && lead.versions > stop.Updates {
		c.fail("budgets: the lead shard made %d versions of a budget of %d", lead.versions, stop.Updates)
	}
	if st := c.s.Shard(0); st.Samples != lead.samples {
		c.fail("budgets: the lead shard folded %d samples and committed %d", lead.samples, st.Samples)
	}
}
