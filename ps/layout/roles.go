package layout

import (
	"fluentps/configs"
	"fluentps/ps/shard"
)

// Roles says who serves, who works, and who computes for whom, under this configuration. With baseline: allreduce nobody
// serves.
func Roles(c *configs.Config, hosts []string) (shard.Roles, error) {
	if Reduces(c) {
		return shard.AllWork(len(hosts)), nil
	}
	roles, err := shard.Assign(hosts, c.Cluster.Servers, c.Cluster.Placement)
	if err == nil && Teams(c) {
		roles = roles.ByNode(hosts)
	}
	return roles, err
}

// Reduces says whether the ranks add their gradients up with a collective, and nobody serves.
func Reduces(c *configs.Config) bool { return c.Baseline == configs.BaselineAllreduce }

// Teams says whether the ranks of a host compute as one worker.
func Teams(c *configs.Config) bool { return c.Cluster.Hierarchy == configs.HierarchyNode }
