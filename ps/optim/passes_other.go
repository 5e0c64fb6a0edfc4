//go:build !amd64 || purego

package optim

func scalePass(dst, src []float32, weight float32)                { scaleGo(dst, src, weight) }
func sumPass(dst, a, b []float32, weight float32, _ bool)         { sumGo(dst, a, b, weight) }
func blendPass(dst, a, b []float32, scale, weight float32)        { blendGo(dst, a, b, scale, weight) }
func sgdPass(dst, src, grad []float32, lr, k, wd float32, _ bool) { sgdGo(dst, src, grad, lr, k, wd) }
func normsPass(push, params []float32, l *lanes)                  { normsGo(push, params, l) }
func momentumPass(dst, src, grad, m []float32, lr, k, wd, mu float32, _ bool) {
	momentumGo(dst, src, grad, m, lr, k, wd, mu)
}
func adamPass(dst, src, grad, m, v []float32, c *adamScalars) { adamGo(dst, src, grad, m, v, c) }
func nesterovPass(dst, src, grad, m []float32, lr, k, wd, mu float32, _ bool) {
	nesterovGo(dst, src, grad, m, lr, k, wd, mu)
}
