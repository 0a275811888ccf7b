// Package check holds what lies in .deploy against what it is about: Kubernetes'
// own types, the chart and the manifests against each other, the flags that kvca
// has, and kvca's own opinion of its files. Its tests are make deploy-check.
//
// It is a module of its own, so that none of this comes near the gateway's.
//
// Data: text is decoded once, strictly, into a Set of objects; everything else
// only reads. Nothing is started but the programs go and kvca, with a deadline.
package check
