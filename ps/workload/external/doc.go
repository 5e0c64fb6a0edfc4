// Package external runs a model in another process, the child: a PyTorch script, or a program in C, JAX or Julia. The child computes in
// memory that it shares with its worker rank, and both talk in short messages (PROTOCOL.md).
//
//	c, err := external.Start(o, want) // greets the child, and compares its tensors with an architecture
//	m := c.Model(external.Training)
//	m.Bind(params, grads)             // in memory of c.Room, or copied
//	loss, correct, err := m.Forward(batch, wait)
//	err = m.Backward(ready)
//	err = c.Close()
//
// Nothing of it needs MPI or Python.
package external
