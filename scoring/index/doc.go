// Package index
package index
