import { render } from 'preact';
import 'uplot/dist/uPlot.min.css';
import './style.css';
import { App } from './ui/app';

const place = document.getElementById('page');
if (place !== null) render(<App />, place);
