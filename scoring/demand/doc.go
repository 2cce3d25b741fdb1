// Package demand
package demand
