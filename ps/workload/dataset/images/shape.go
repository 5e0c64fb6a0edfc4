// Package images reads images, and changes them at random in training.
package images

// Shape is the shape of a row that is an image: Channels planes, one after the other, of Height x Width values, row-major
// (a batch is in NCHW order). All are at least 1, or all 0.
type Shape struct{ Channels, Height, Width int }

func (i Shape) Values() int { return i.Channels * i.Height * i.Width }
