package workload

import "fluentps/ps/workload/dataset"

// What a model sees of its data. Package dataset has the rest: readers, and who gets which rows.
type (
	// Batch is N samples, in the form that the model takes.
	Batch = dataset.Batch
	// Entries are rows in compressed form.
	Entries = dataset.Entries
	// Samples is what a model is made for.
	Samples = dataset.Samples
	// Image is the size of a sample that is an image.
	Image = dataset.Image
	// Matrix is the size of the matrix of which samples are entries.
	Matrix = dataset.Matrix
	// DataSpec is a data set for who reads it.
	DataSpec = dataset.Spec
)

// NewBatch makes a batch for up to most samples such as from, for the model of that name.
func NewBatch(model string, from Samples, most int) Batch {
	return dataset.NewBatch(TakesSparse(model), from, most)
}
