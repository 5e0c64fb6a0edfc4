//go:build !amd64 || purego

package optim

// Each pass is its twin, and then a look at what it wrote, which is in the cache.

func scalePass(dst, src []float32, weight float32) uint32 {
	scaleGo(dst, src, weight)
	return topGo(dst)
}

func sumPass(dst, a, b []float32, weight float32, _ bool) uint32 {
	sumGo(dst, a, b, weight)
	return topGo(dst)
}

func blendPass(dst, a, b []float32, scale, weight float32) uint32 {
	blendGo(dst, a, b, scale, weight)
	return topGo(dst)
}

func sgdPass(dst, src, grad []float32, lr, k, wd float32, _ bool) uint32 {
	sgdGo(dst, src, grad, lr, k, wd)
	return topGo(dst)
}

func momentumPass(dst, src, grad, m []float32, lr, k, wd, mu float32, _ bool) uint32 {
	momentumGo(dst, src, grad, m, lr, k, wd, mu)
	return topGo(dst)
}

func nesterovPass(dst, src, grad, m []float32, lr, k, wd, mu float32, _ bool) uint32 {
	nesterovGo(dst, src, grad, m, lr, k, wd, mu)
	return topGo(dst)
}

func adamPass(dst, src, grad, m, v []float32, c *adamScalars) uint32 {
	adamGo(dst, src, grad, m, v, c)
	return topGo(dst)
}

func topPass(x []float32) uint32 { return topGo(x) }

func normsPass(push, params []float32, l *lanes) { normsGo(push, params, l) }
