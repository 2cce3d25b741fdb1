// Package nodes
package nodes
