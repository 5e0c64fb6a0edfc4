package metrics

// EpochLoss is the mean train loss over the last epoch that is complete, or over all samples before there is one.
// Rows, the samples of an epoch, is set before the first Add.
type EpochLoss struct {
	Rows int64

	epoch, last lossMean // of the current epoch, and of the last complete one
}

// lossMean is a mean over samples.
type lossMean struct {
	sum     float64
	samples int64
}

func (m lossMean) value() *Float {
	if m.samples == 0 {
		return nil
	}
	return Some(m.sum / float64(m.samples))
}

// Add takes the loss of a push, a sum over its samples.
func (l *EpochLoss) Add(loss float64, samples int64) {
	if l.epoch.samples >= l.Rows {
		l.last, l.epoch = l.epoch, lossMean{}
	}
	l.epoch.sum += loss
	l.epoch.samples += samples
}

// Value is nil before the first sample.
func (l *EpochLoss) Value() *Float {
	if l.epoch.samples >= l.Rows || l.last.samples == 0 {
		return l.epoch.value()
	}
	return l.last.value()
}
