// Package member is who belongs to the cluster.
package member
