"""Pictures and films of scenes and recordings, drawn by OpenGL without a screen; and what pages and exports share with
them: colours, cameras, surfaces of shapes, output files. Imports neither `page` nor `export`."""
